package live

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSS is the style sheet of rows: the colours 16 to 255 as classes, and lines and
// blocks, which are drawn so that they join in any font. The page's own style sheet
// defines the first 16 colours, which a theme may choose, and fx and gx.
func CSS() []byte {
	var b strings.Builder
	for n := 16; n < 256; n++ {
		c := paletteColor(n)
		fmt.Fprintf(&b, ".f%d{color:#%06x}.g%d{background-color:#%06x}\n", n, c, n, c)
	}
	drawings(&b)
	return []byte(b.String())
}

// lines are the box drawing characters that are drawn: for each, the lines from its
// middle to the left, right, top and bottom, 1 thin and 2 thick.
const lines = "─1100 ━2200 │0011 ┃0022 ┌0101 ┐1001 └0110 ┘1010 ├0111 ┤1011 ┬1101 ┴1110 ┼1111 " +
	"┏0202 ┓2002 ┗0220 ┛2020 ┣0222 ┫2022 ┳2202 ┻2220 ╋2222 ╭0101 ╮1001 ╯1010 ╰0110 ╴1000 ╵0010 ╶0100 ╷0001 " +
	"╸2000 ╹0020 ╺0200 ╻0002 ╼1200 ╽0012 ╾2100 ╿0021"

// blocks are the block elements, as parts of a cell in eighths: left, top, width and
// height.
const blocks = "▀0084 ▁0781 ▂0682 ▃0583 ▄0484 ▅0385 ▆0286 ▇0187 █0088 ▉0078 ▊0068 ▋0058 ▌0048 ▍0038 ▎0028 ▏0018 ▐4048 ▔0081 ▕7018 " +
	"▖0444 ▗4444 ▘0044 ▙00480484 ▚00444444 ▛00840448 ▜00844448 ▝4044 ▞40440444 ▟40480444"

const shades = "░▒▓" // a quarter, a half, three quarters

// drawnClass returns the class of a character that is drawn, or "".
func drawnClass(r rune) string {
	if r < 0x2500 || r > 0x259f {
		return ""
	}
	return "x" + strconv.FormatInt(int64(r), 16)
}

// drawings adds the rules for lines and blocks, as backgrounds of their cells.
func drawings(b *strings.Builder) {
	rule := func(r rune, parts []string) {
		b.WriteString("." + drawnClass(r) + "{-webkit-text-fill-color:transparent;background-repeat:no-repeat;background-image:" +
			strings.TrimSuffix(strings.Repeat("linear-gradient(currentColor,currentColor),", len(parts)), ","))
		var at, size []string
		for _, p := range parts {
			a, s, _ := strings.Cut(p, "/")
			at, size = append(at, a), append(size, s)
		}
		b.WriteString(";background-position:" + strings.Join(at, ",") + ";background-size:" + strings.Join(size, ",") + "}\n")
	}
	for f := range strings.FieldsSeq(lines) {
		r, n := utf8.DecodeRuneInString(f)
		var parts []string
		for i, where := range []string{"0 50%%/calc(50%% + %[1]s/2) %[1]s", "100%% 50%%/calc(50%% + %[1]s/2) %[1]s", "50%% 0/%[1]s calc(50%% + %[1]s/2)", "50%% 100%%/%[1]s calc(50%% + %[1]s/2)"} {
			if thick := f[n+i]; thick != '0' {
				parts = append(parts, fmt.Sprintf(where, string(thick)+"px"))
			}
		}
		rule(r, parts)
	}
	for f := range strings.FieldsSeq(blocks) {
		r, n := utf8.DecodeRuneInString(f)
		var parts []string
		for p := f[n:]; p != ""; p = p[4:] {
			left, top, width, height := float64(p[0]-'0'), float64(p[1]-'0'), float64(p[2]-'0'), float64(p[3]-'0')
			at := func(from, size float64) string { // a background's position is relative to the space it leaves free
				if size == 8 {
					return "0"
				}
				return percent(from / (8 - size))
			}
			parts = append(parts, at(left, width)+" "+at(top, height)+"/"+percent(width/8)+" "+percent(height/8))
		}
		rule(r, parts)
	}
	for i, r := range []rune(shades) {
		fmt.Fprintf(b, ".%s{-webkit-text-fill-color:transparent;background-image:linear-gradient(color-mix(in srgb,currentColor %d%%,transparent) 0 0)}\n", drawnClass(r), 25*(i+1))
	}
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'g', 5, 64) + "%" }
