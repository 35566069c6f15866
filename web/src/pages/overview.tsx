import {Page} from '../ui/parts';

export function Overview(_: {parts: string[]}) {
  return <Page title="Overview"><p>…</p></Page>;
}
