package live

import (
	"fmt"
	"strconv"

	"netsky/tmux/screen"
)

// colorClass adds the class of the nearest colour in the palette.
func colorClass(class []byte, prefix byte, c screen.Color) []byte {
	n, ok := c.Indexed()
	if rgb, own := c.RGB(); own {
		n, ok = nearest(rgb), true
	}
	if !ok {
		return class
	}
	return strconv.AppendInt(append(class, ' ', prefix), int64(n), 10)
}

// exact returns the exact colour if the class only approximates it, else "".
func exact(c screen.Color) string {
	rgb, ok := c.RGB()
	if !ok || paletteColor(nearest(rgb)) == rgb {
		return ""
	}
	return fmt.Sprintf("#%06x", rgb)
}

func pack(r, g, b int) uint32 { return uint32(r)<<16 | uint32(g)<<8 | uint32(b) }

func split(c uint32) (r, g, b int) { return int(c >> 16 & 0xff), int(c >> 8 & 0xff), int(c & 0xff) }

// steps are the levels of the palette's 6×6×6 cube.
var steps = [...]int{0, 95, 135, 175, 215, 255}

// paletteColor returns one of the fixed colours, 16 to 255. The page chooses the first
// 16.
func paletteColor(n int) uint32 {
	if n >= 232 {
		v := 8 + 10*(n-232)
		return pack(v, v, v)
	}
	n -= 16
	return pack(steps[n/36], steps[n/6%6], steps[n%6])
}

// nearest returns the number in the palette of the nearest colour in the cube or among
// the greys.
func nearest(c uint32) int {
	r, g, b := split(c)
	cube := 16 + 36*step(r) + 6*step(g) + step(b)
	grey := 232 + min(max(((r+g+b)/3-3)/10, 0), 23)
	if far(c, paletteColor(grey)) < far(c, paletteColor(cube)) {
		return grey
	}
	return cube
}

func step(v int) int {
	switch {
	case v < 48:
		return 0
	case v < 115:
		return 1
	}
	return (v - 35) / 40
}

func far(a, b uint32) int {
	r, g, bl := split(a)
	x, y, z := split(b)
	return (r-x)*(r-x) + (g-y)*(g-y) + (bl-z)*(bl-z)
}
