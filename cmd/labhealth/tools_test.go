package main

import (
	_ "github.com/chromedp/chromedp"
	_ "github.com/google/go-cmp/cmp"
	_ "go.uber.org/goleak"
	_ "modernc.org/sqlite"
)
