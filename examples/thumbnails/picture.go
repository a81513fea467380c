package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
)

// Picture is a picture in a file of the app's folder.
type Picture struct{ Name string }

// Thumbnail is a small picture. A result may have 1 MiB; larger ones belong in a file.
type Thumbnail struct{ PNG []byte }

// MakeThumbnail makes the thumbnail of a picture. It is kept for a day.
var MakeThumbnail = pawl.DefineTask[Picture, Thumbnail]("thumbnail", pawl.Retain(24*time.Hour))

const (
	side      = 200        // the most pixels of a thumbnail in each direction
	maxPixels = 20_000_000 // of a picture, since a small file may have a huge one
)

type thumbnails struct {
	folder string
	pause  time.Duration
}

// make is the handler. It may run again after a crash, and makes the same thumbnail.
func (t thumbnails) make(ctx context.Context, job *pawl.Job[Picture]) (Thumbnail, error) {
	f, err := os.Open(filepath.Join(t.folder, job.Args.Name))
	if err != nil {
		return Thumbnail{}, err
	}
	defer f.Close()
	from, err := decode(f)
	if err != nil {
		return Thumbnail{}, pawl.Permanent(err) // another try would not help
	}
	width, height := from.Bounds().Dx(), from.Bounds().Dy()
	scale := max(1, float64(max(width, height))/side)
	to := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(width)/scale)), max(1, int(float64(height)/scale))))
	for y := range to.Rect.Dy() {
		for x := range to.Rect.Dx() {
			to.Set(x, y, from.At(from.Bounds().Min.X+int(float64(x)*scale), from.Bounds().Min.Y+int(float64(y)*scale)))
		}
		job.Progress(int64(y+1), int64(to.Rect.Dy()), "rows")
		select {
		case <-time.After(t.pause):
		case <-ctx.Done(): // a stop; the job runs again after the next start
			return Thumbnail{}, ctx.Err()
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, to); err != nil {
		return Thumbnail{}, err
	}
	return Thumbnail{b.Bytes()}, nil
}

func decode(f io.ReadSeeker) (image.Image, error) {
	size, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, err
	}
	if size.Width < 1 || size.Height < 1 || size.Width > maxPixels/size.Height {
		return nil, fmt.Errorf("the picture has %d × %d pixels", size.Width, size.Height)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	picture, _, err := image.Decode(f)
	return picture, err
}
