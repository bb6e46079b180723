//go:build !unix

package inspect

func umask(mask int) int { return mask }
