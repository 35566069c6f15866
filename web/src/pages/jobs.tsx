import {Page} from '../ui/parts';

export function Jobs(_: {parts: string[]}) {
  return <Page title="Jobs"><p>…</p></Page>;
}
