// Dialogs and fields that several pages use: a question before a change, a secret that is shown once, a
// short form.
import {useSignal, type Signal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useEffect, useId, useRef} from 'preact/hooks';
import {Copy, Dialog, ErrorNote, error_text, toast, useBusy} from './parts';

/**
 * Asks before `act`, and cannot start it twice. The caller closes the dialog. An error that `act` throws is shown in the
 * dialog, or if it was closed meanwhile, in a message.
 */
export function ConfirmDialog({
  title,
  verb,
  act,
  close,
  children,
}: {
  title: string;
  verb: string;
  act: () => Promise<unknown>;
  close: () => void;
  children: ComponentChildren;
}) {
  const {busy, run} = useBusy();
  const fault = useSignal<unknown>(null);
  const is_closed = useRef(false);
  useEffect(
    () => () => {
      is_closed.current = true;
    },
    [],
  );
  const confirm = () =>
    run(async () => {
      fault.value = null;
      try {
        await act();
      } catch (problem) {
        if (is_closed.current) toast(error_text(problem), 'error');
        else fault.value = problem;
      }
    });
  return (
    <Dialog title={title} onClose={close}>
      {children}
      <ErrorNote error={fault.value} />
      <div class="actions">
        <button onClick={close}>Cancel</button>
        <button
          class="danger"
          disabled={busy}
          onClick={() => {
            void confirm();
          }}
        >
          {verb}
        </button>
      </div>
    </Dialog>
  );
}

/** Shows a text that the server cannot show again. */
export function SecretDialog({
  title,
  text,
  close,
  children,
}: {
  title: string;
  text: string;
  close: () => void;
  children: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={close}>
      {children}
      <pre class="mono last">{text}</pre>
      <div class="actions">
        <Copy text={text} />
        <button class="primary" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

/** A form whose children are its fields. `send` closes the dialog; an error that it throws is shown in the form. */
export function FormDialog({
  title,
  close,
  send,
  ready = true,
  children,
}: {
  title: string;
  close: () => void;
  send: () => Promise<void>;
  ready?: boolean;
  children: ComponentChildren;
}) {
  const fault = useSignal<unknown>(null);
  const {busy, run} = useBusy();
  const submit = (event: Event) => {
    event.preventDefault();
    return run(async () => {
      try {
        await send();
      } catch (problem) {
        fault.value = problem;
      }
    });
  };
  return (
    <Dialog title={title} onClose={close}>
      <form
        class="stack tight"
        onSubmit={(event) => {
          void submit(event);
        }}
      >
        {children}
        <ErrorNote error={fault.value} />
        <div class="actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="primary" disabled={!ready || busy}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** An input with a label. All other properties go to the input. */
export function TextField({label, value, ...rest}: {label: string; value: Signal<string>; [name: string]: unknown}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value.value}
        onInput={(e) => {
          value.value = e.currentTarget.value;
        }}
        {...rest}
      />
    </div>
  );
}

/** A selection with a label. `choices` are pairs of a value and its text. */
export function ChoiceField({
  label,
  value,
  choices,
}: {
  label: string;
  value: Signal<string>;
  choices: [string, string][];
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value.value}
        onChange={(e) => {
          value.value = e.currentTarget.value;
        }}
      >
        {choices.map(([key, text]) => (
          <option key={key} value={key} selected={key === value.value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}
