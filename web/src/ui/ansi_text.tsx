// Shows a line of a log as text nodes. No part of the line is parsed as HTML.
import {pieces_of, readable, type Piece} from './ansi';
import {matches_in, type Mark} from './mark';

/** Whether the page is shown in the dark theme. */
export function is_dark(): boolean {
  const chosen = document.documentElement.dataset['theme'];
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

const black_or_white = (colour: string) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * r! + 0.587 * g! + 0.114 * b! > 140 ? '#000000' : '#ffffff';
};

type Look = {background?: string; color?: string};

function look(piece: Piece, dark: boolean): {cls: string; style: Look} {
  const cls: string[] = [];
  const style: Look = {};
  let {fg, bg} = piece;
  if (piece.inverse) cls.push('inv');
  if (typeof bg === 'string') {
    style.background = bg;
    style.color = black_or_white(bg);
    fg = undefined;
  } else if (bg !== undefined) {
    cls.push(`b${bg}`);
    fg = undefined;
  }
  if (typeof fg === 'string') style.color = readable(fg, dark);
  else if (fg !== undefined) cls.push(`f${fg}`);
  if (piece.bold) cls.push('bo');
  if (piece.faint) cls.push('fa');
  if (piece.italic) cls.push('it');
  if (piece.underline) cls.push('un');
  if (piece.strike) cls.push('st');
  return {cls: cls.join(' '), style};
}

export function AnsiText({text, dark, mark}: {text: string; dark: boolean; mark?: Mark | null}) {
  const pieces = pieces_of(text);
  return (
    <bdi class="ansi">
      {pieces.map((piece, i) => {
        const content = mark ? marked(piece.text, mark) : piece.text;
        if (
          piece.fg === undefined &&
          piece.bg === undefined &&
          !piece.bold &&
          !piece.faint &&
          !piece.inverse &&
          !piece.italic &&
          !piece.underline &&
          !piece.strike
        )
          return <span key={i}>{content}</span>;
        const {cls, style} = look(piece, dark);
        return (
          <span key={i} class={cls} style={style}>
            {content}
          </span>
        );
      })}
    </bdi>
  );
}

function marked(text: string, mark: Mark) {
  const out = [];
  let last = 0;
  for (const [begin, end] of matches_in(text, mark)) {
    if (begin > last) out.push(text.slice(last, begin));
    out.push(<mark key={begin}>{text.slice(begin, end)}</mark>);
    last = end;
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}
