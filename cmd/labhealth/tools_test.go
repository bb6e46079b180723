package main

import (
	_ "github.com/schollz/progressbar/v3"
)
