module github.com/gopawl/pawl

go 1.25.0
