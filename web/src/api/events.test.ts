import {expect, test} from 'vitest';
import {EventParser} from './events';

test('events come whole, however the text is cut', () => {
  const text = ': hello\n\nevent: log\ndata: {"a":1}\n\nid: 0;1.main@7\n\nevent: log\r\ndata: b\r\ndata: c\r\n\r\n';
  for (let cut = 1; cut < text.length; cut++) {
    const parser = new EventParser();
    const events = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
    expect(events).toEqual([
      {event: 'log', data: '{"a":1}', id: ''},
      {event: 'place', data: '', id: '0;1.main@7'},
      {event: 'log', data: 'b\nc', id: ''},
    ]);
  }
});
