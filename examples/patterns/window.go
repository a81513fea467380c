package patterns

import "github.com/gopawl/pawl/workflow"

// Convert converts files, at most three at a time. The name of a file is its identity, so a file that
// was converted is not converted again, wherever it is in the list.
func Convert(w World) *workflow.Flow[[]string, []string] {
	return workflow.Define("convert", func(r *workflow.Run, files []string) ([]string, error) {
		name := func(file string) string { return file }
		return workflow.Each(r, "file", files, name, 3, func(r *workflow.Run, file string) (string, error) {
			return file + ".webp", do(r, w, "convert "+file)
		})
	})
}
