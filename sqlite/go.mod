module github.com/gopawl/pawl/sqlite

go 1.25.0

require (
	github.com/gopawl/pawl v0.1.0
	github.com/hashicorp/go-hclog v1.6.3
	github.com/stretchr/testify v1.12.1
	modernc.org/sqlite v1.59.0
)
