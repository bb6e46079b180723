package main

import (
	_ "github.com/chromedp/chromedp"
	_ "go.uber.org/goleak"
	_ "modernc.org/sqlite"
)
