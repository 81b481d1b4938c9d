//go:build live && pictures

package dashboard_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"netsky/dashboard"
	"netsky/internal/testworld"
)

func mustDir(tb testing.TB) string {
	dir := os.Getenv("NETSKY_PICTURES")
	if dir == "" {
		tb.Fatal("NETSKY_PICTURES names no directory")
	}
	return dir
}

// TestPictures takes a picture of every page, of sample data, for people to look
// at, into the directory that NETSKY_PICTURES names.
func TestPictures(t *testing.T) {
	t.Parallel()
	dir := mustDir(t)
	w := mustWorld(t, func(o *dashboard.Options) { o.Version, o.Poll = "0.1.0", 100*time.Millisecond })
	w.showcase(t)
	w.showHosts(t)
	l := mustBrowser(t).look(t, w)
	for _, theme := range []string{"light", "dark"} {
		l.theme(theme, true)
		for _, width := range []int{1280, 390} {
			l.size(width, 800)
			for _, p := range allPages {
				l.open(p.path)
				l.live()
				l.picture(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", p.name, theme, width)), true)
			}
		}
	}
	l.clean()
}

// TestDocPictures takes the pictures of the documents, of a daemon that runs:
// NETSKY_PICTURES_LINK is what its `netsky dashboard` prints. scripts/pictures
// starts one, gives its agents work, and calls this.
func TestDocPictures(t *testing.T) {
	t.Parallel()
	dir, link := mustDir(t), os.Getenv("NETSKY_PICTURES_LINK")
	if link == "" {
		t.Fatal("NETSKY_PICTURES_LINK is no link to a dashboard")
	}
	ctx, cancel := chromedp.NewContext(mustBrowser(t).ctx)
	defer cancel()
	l := &looker{tb: t, ctx: ctx}
	site := strings.Join(strings.SplitAfterN(link, "/", 4)[:3], "")
	l.size(1280, 800)
	l.theme("light", true)
	l.goTo(link)
	for _, p := range []struct {
		name, theme, path string
		width, height     int
	}{
		{"overview", "light", "", 1280, 860}, {"agent", "dark", "agents/agent0", 1280, 720},
		{"phone", "dark", "", 390, 844},
	} {
		l.theme(p.theme, true)
		l.size(p.width, p.height)
		l.goTo(site + p.path)
		l.live()
		eval[any](l, `document.documentElement.style.scrollbarGutter = "auto", null`)
		l.picture(filepath.Join(dir, "dashboard-"+p.name+".png"), false)
	}
}

func (t *looker) picture(file string, full bool) {
	t.tb.Helper()
	a := chromedp.CaptureScreenshot()
	if full {
		a = chromedp.FullScreenshot(100)
	}
	data := testworld.Got(chromedp.Run(t.ctx, a))(t.tb)
	testworld.Must(t.tb, os.WriteFile(file, small(t.tb, data), 0o644))
}

// small is a picture in 256 colours: the most frequent of each part of the cube,
// so that a small green dot stays green, then the most frequent of all.
func small(tb testing.TB, data []byte) []byte {
	tb.Helper()
	img := testworld.Got(png.Decode(bytes.NewReader(data)))(tb)
	b := img.Bounds()
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y color.RGBA) int { return count[y] - count[x] })
	var palette color.Palette
	var rest []color.RGBA
	part := map[[3]uint8]bool{}
	for _, c := range all {
		if k := [3]uint8{c.R >> 5, c.G >> 5, c.B >> 5}; part[k] {
			rest = append(rest, c)
		} else {
			part[k] = true
			palette = append(palette, c)
		}
	}
	palette = palette[:min(len(palette), 192)]
	for _, c := range rest[:min(len(rest), 256-len(palette))] {
		palette = append(palette, c)
	}
	out, index := image.NewPaletted(b, palette), map[color.RGBA]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := at(x, y)
			i, known := index[c]
			if !known {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var buf bytes.Buffer
	testworld.Must(tb, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&buf, out))
	return buf.Bytes()
}
