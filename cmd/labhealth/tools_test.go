package main

import (
	_ "github.com/chromedp/chromedp"
	_ "github.com/google/go-cmp/cmp"
	_ "go.uber.org/goleak"
	_ "golang.org/x/term"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/fatih/color"
)
