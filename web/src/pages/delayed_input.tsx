// An input whose text is a part of the address.
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {query_value, set_query} from '../app/router';

/** Writes its text into the address, a moment after the last key. */
export function DelayedInput({name, label, search}: {name: string; label: string; search?: boolean}) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const ref = useRef<HTMLInputElement>(null);
  const value = query_value(name);
  useLayoutEffect(() => {
    if (ref.current && document.activeElement !== ref.current) ref.current.value = value;
  }, [value]);
  const apply = () => {
    clearTimeout(timer.current);
    if (ref.current && ref.current.value !== query_value(name)) set_query({[name]: ref.current.value.trim()});
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const common = {
    ref,
    'aria-label': label,
    placeholder: label,
    defaultValue: value,
    onChange: apply,
    onInput: () => {
      clearTimeout(timer.current);
      timer.current = setTimeout(apply, 180);
    },
  };
  return search ? (
    <input type="search" data-search size={24} {...common} />
  ) : (
    <input type="text" size={10} {...common} />
  );
}
