package main

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/schollz/progressbar/v3"
)
