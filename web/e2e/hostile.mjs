// Texts that attack a page that shows them: markup, style sheets, links, terminal sequences, marks
// that reorder or cover what is beside them.
export const kMarkup = [
  '<script>window.__attacked=1</script>', '<img src=x onerror="window.__attacked=1">', '"><svg onload=window.__attacked=1>', '</script><script>window.__attacked=1</script>',
  "'-alert(1)-'", 'javascript:window.__attacked=1', '<a href="javascript:window.__attacked=1">click</a>', '{{constructor.constructor("window.__attacked=1")()}}', '${window.__attacked=1}',
  '<style>*{display:none}</style>', '<iframe srcdoc="<script>parent.__attacked=1</script>">', '<link rel=stylesheet href=//evil.example/x.css>', '<base href=//evil.example/>', '<math><mi xlink:href="javascript:window.__attacked=1">x',
  '&lt;img src=x onerror=window.__attacked=1&gt;', '<!--', ']]>', '<form action=//evil.example><input name=x></form>', '<meta http-equiv=refresh content="0;url=//evil.example">',
];
export const kTerminal = [
  '\u001b]0;title\u0007', '\u001b]8;;https://evil.example/\u001b\\link\u001b]8;;\u001b\\', '\u001b]52;c;ZXZpbA==\u0007', '\u001b[2J\u001b[1;1H', '\u001b[8mhidden\u001b[0m', '\u001b[31m<img src=x onerror=window.__attacked=1>\u001b[0m',
  '\u001b[38;2;255;255;255mwhite on white', '\u001bP+q544e\u001b\\', '\u009b31mC1', 'over\rwritten', '\u001b[999999999999999999;1m', '\u001b[' + '1;'.repeat(2000) + 'm', 'a\u0000b', '\u0007\u0008\u007f',
];
export const kUnicode = ['\u202egnp.exe', '\u2066\u2067\u2068\u2069', 'x' + '\u0301'.repeat(300), 'مرحبا بالعالم', 'שלום', '\u200b\u200c\ufeff', 'W'.repeat(4000), '日本語テキスト', '\ud83d\udc69\u200d\ud83d\udd2c'];
export const kAll = [...kMarkup, ...kTerminal, ...kUnicode];
