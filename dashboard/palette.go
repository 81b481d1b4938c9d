package dashboard

import (
	"fmt"
	"net/http"
	"strings"
)

// palettePath has the colours 16 to 255 as classes; the first 16, which a theme
// may choose, and fx and gx are the pages' own.
const palettePath = "/palette.css"

func (s *Server) paletteCSS(w http.ResponseWriter, r *http.Request) {
	var b strings.Builder
	for n := 16; n < 256; n++ {
		c := paletteColor(n)
		fmt.Fprintf(&b, ".f%d{color:#%06x}.g%d{background-color:#%06x}\n", n, uint32(c&0xffffff), n, uint32(c&0xffffff))
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Write([]byte(b.String()))
}
