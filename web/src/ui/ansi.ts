// Turns a line that a program printed into pieces of text with styles. The line is not trusted: escape
// sequences for colours become styles, all other sequences are dropped, and characters that would reorder
// or hide text are replaced by visible ones.
//
// Pure: uses no DOM.

export interface Piece {
  text: string;
  /** 0 to 15: a colour of the theme; '#rrggbb': a colour that the program chose. */
  fg?: number | string;
  bg?: number | string;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
  strike?: boolean;
}

type Style = Omit<Piece, 'text'>;

// CSI with any parameters; OSC, DCS, SOS, PM, APC up to their end (or the end of the line); other ESC.
const kEscape =
  /\x1b\[([0-9:;<=>?]*)[ -\/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x9b([0-9:;<=>?]*)[ -\/]*([@-~])|\x1b[ -\/]*[0-~]?/g;

/** Characters that are invisible or change the direction of the text after them. */
const kHidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g;

/** Five or more combining marks in a row: stacked on one letter, they would cover the lines above and below. */
const kTower = /(\p{M}{4})\p{M}+/gu;

/** The text with visible signs in place of hidden characters, and with at most four combining marks in a row. */
export function visible_text(text: string): string {
  return text
    .replace(kHidden, (found, at: number) => {
      const code = found.codePointAt(0)!;
      // Emoji and several scripts need joiners.
      if ((code === 0x200c || code === 0x200d) && at > 0 && text.charCodeAt(at - 1) > 0x5ff) return found;
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      if (code === 0x7f) return '\u2421';
      return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
    })
    .replace(kTower, '$1');
}

/** The colour n of the 256 colours of a terminal: from 16 on a cube of 6 x 6 x 6, from 232 on greys. */
function cube(n: number): string {
  const hex = (v: number) => v.toString(16).padStart(2, '0');
  if (n >= 232) {
    const v = hex(8 + (n - 232) * 10);
    return `#${v}${v}${v}`;
  }
  const i = n - 16;
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  return `#${hex(level(Math.floor(i / 36)))}${hex(level(Math.floor(i / 6) % 6))}${hex(level(i % 6))}`;
}

/** `style` after the parameters of an SGR sequence, such as "1;31". */
function apply(style: Style, text: string): Style {
  if (/[<=>?]/.test(text)) return style;
  let next: Style = {...style};
  const codes = text.split(/[;:]/).map((each) => (each === '' ? 0 : Number(each)));
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) {
      delete next.bold;
      delete next.faint;
    } else if (code === 23) delete next.italic;
    else if (code === 24) delete next.underline;
    else if (code === 27) delete next.inverse;
    else if (code === 29) delete next.strike;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code === 39) delete next.fg;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code === 49) delete next.bg;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 38 || code === 48) {
      const where = code === 38 ? 'fg' : 'bg';
      if (codes[i + 1] === 5) {
        const n = codes[i + 2] ?? -1;
        if (n >= 0 && n <= 255) next[where] = n < 16 ? n : cube(n);
        i += 2;
      } else if (codes[i + 1] === 2) {
        const rgb = codes.slice(i + 2, i + 5);
        if (rgb.length === 3 && rgb.every((v) => v >= 0 && v <= 255))
          next[where] = '#' + rgb.map((v) => v.toString(16).padStart(2, '0')).join('');
        i += 4;
      }
    }
  }
  return next;
}

/** The pieces of a line. Of parts that a carriage return overwrites, such as a progress bar, the last is shown. */
export function pieces_of(line: string): Piece[] {
  let text = line;
  if (text.includes('\r')) {
    const parts = text.split('\r').filter((part) => part !== '');
    text = parts.at(-1) ?? '';
  }
  if (!/[\u0000-\u001f\u007f-\u009f]/.test(text)) return [{text: visible_text(text)}];
  const out: Piece[] = [];
  let style: Style = {};
  let begin = 0;
  const put = (end: number) => {
    if (end > begin) out.push({...style, text: visible_text(text.slice(begin, end))});
  };
  kEscape.lastIndex = 0;
  for (let found = kEscape.exec(text); found; found = kEscape.exec(text)) {
    put(found.index);
    begin = found.index + found[0].length;
    if (found[2] === 'm') style = apply(style, found[1] ?? '');
    else if (found[4] === 'm') style = apply(style, found[3] ?? '');
  }
  put(text.length);
  return out.length ? out : [{text: ''}];
}

export function plain_text(line: string): string {
  return pieces_of(line)
    .map((piece) => piece.text)
    .join('');
}

function luminance(rgb: number[]): number {
  const [r, g, b] = rgb.map((v) => {
    const c = v / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

/** `colour`, lightened or darkened until it has a contrast of 4.6 on the background of the page. */
export function readable(colour: string, dark: boolean): string {
  const rgb = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const ground = dark ? 0.0115 : 1;
  for (let step = 0; step <= 20; step++) {
    const t = step / 20;
    const mixed = rgb.map((v) => Math.round(v + ((dark ? 255 : 0) - v) * t));
    const l = luminance(mixed);
    if ((Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05) >= 4.6)
      return '#' + mixed.map((v) => v.toString(16).padStart(2, '0')).join('');
  }
  return dark ? '#ffffff' : '#000000';
}

export type Level = 'error' | 'warning' | 'info' | 'debug' | '';

const kErrors = String.raw`\b(ERROR|CRITICAL|FATAL|PANIC|Traceback)\b|\b\w*(Error|Exception):|^E\d{4} |^\[?([Ee]rror|[Ff]atal)\b`;
const kWarnings = String.raw`\b(WARN|WARNING)\b|Warning:|^W\d{4} |^\[?[Ww]arn(ing)?\b`;

/** A pattern for the server's search: the lines of this level and above. Empty for `info`, `debug` and all lines. */
export function pattern_of(level: Level): string {
  return level === 'error' ? kErrors : level === 'warning' ? `${kErrors}|${kWarnings}` : '';
}

/** The level that a line names in the style of a common logger. */
export function level_of(text: string): Level {
  const head = text.slice(0, 160);
  if (
    /\b(ERROR|CRITICAL|FATAL|PANIC|Traceback|[A-Za-z]*(?:Error|Exception):)|^E\d{4} /.test(head) ||
    /^\[?(error|fatal)\b/i.test(head)
  )
    return 'error';
  if (/\b(WARN|WARNING)\b|^W\d{4} |[A-Za-z]*Warning:/.test(head) || /^\[?warn(ing)?\b/i.test(head)) return 'warning';
  if (/\bDEBUG\b|\bTRACE\b/.test(head)) return 'debug';
  if (/\bINFO\b|^I\d{4} /.test(head)) return 'info';
  return '';
}
