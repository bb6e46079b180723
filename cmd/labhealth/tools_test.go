package main

import (
	_ "github.com/fatih/color"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/schollz/progressbar/v3"
	_ "golang.org/x/term"
)
