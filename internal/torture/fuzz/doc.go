// Package fuzz has the family that runs the fuzz targets of the module, each for its share
// of the executions.
package fuzz
