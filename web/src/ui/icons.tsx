// Icons as inline SVG, in the colour of the text. Screen readers skip them.
const kPaths: Record<string, string> = {
  overview: 'M2 9h5V2H2zm7 5h5V7H9zM2 14h5v-3H2zM9 2v3h5V2z',
  jobs: 'M2 4h12M2 8h12M2 12h12',
  submit: 'M8 3v10M3 8h10',
  logs: 'M3 3h10v10H3zM5 6h6M5 8h6M5 10h4',
  compare: 'M2 13l4-6 3 3 5-7',
  projects: 'M8 2v4M3 10V8h10v2M8 6v4M1.5 10h3v3h-3zM6.5 10h3v3h-3zM11.5 10h3v3h-3z',
  nodes: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.1M4.5 11h.1',
  scheduler: 'M8 2a6 6 0 100 12A6 6 0 008 2zM8 5v3l2.5 1.5',
  sweeps: 'M2 12c3-9 4-9 6-4s3 5 6-4',
  access: 'M5.5 8.5a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM1.5 13c.5-2.5 2-3.500 4-3.500s3.500 1 4 3.500M11 4v6M14 7H9',
  audit: 'M3 2h10v12H3zM5.500 5h5M5.500 8h5M5.500 11h3',
  search: 'M7 2.500a4.500 4.500 0 100 9 4.500 4.500 0 000-9zM10.500 10.500L14 14',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  menu: 'M2 4h12M2 8h12M2 12h12',
  sun: 'M8 5.200a2.800 2.800 0 100 5.600 2.800 2.800 0 000-5.600zM8 1v1.800M8 13.200V15M1 8h1.800M13.200 8H15M3 3l1.300 1.300M11.700 11.700L13 13M3 13l1.300-1.300M11.700 4.300L13 3',
  down: 'M3 6l5 5 5-5',
  up: 'M3 10l5-5 5 5',
  download: 'M8 2v8M4.500 7L8 10.500 11.500 7M2.500 13.500h11',
  shell: 'M2 3h12v10H2zM4.500 6l2 2-2 2M8.500 10.500H11',
  link: 'M6.500 9.500l3-3M7 4.500l1-1a2.800 2.800 0 014 4l-1 1M9 11.500l-1 1a2.800 2.800 0 01-4-4l1-1',
};

export function Icon({name}: {name: string}) {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={kPaths[name] ?? ''} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#1f5fbf" />
      <path
        d="M8 23V9.5l8 8 8-8V23"
        fill="none"
        stroke="#fff"
        stroke-width="3.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** A shape for each phase, so that colour is not the only sign. */
export function PhaseShape({phase}: {phase: string}) {
  const shape = {
    Queued: <circle cx="5" cy="5" r="3.700" fill="none" stroke="currentColor" stroke-width="1.600" />,
    Starting: <path d="M5 1.300A3.700 3.700 0 015 8.700" fill="none" stroke="currentColor" stroke-width="1.800" />,
    Running: <path d="M2 1l7 4-7 4z" fill="currentColor" />,
    Succeeded: <path d="M1 5.500l2.700 2.700L9 2" fill="none" stroke="currentColor" stroke-width="1.900" />,
    Failed: <path d="M1.500 1.500l7 7M8.500 1.500l-7 7" stroke="currentColor" stroke-width="1.900" />,
    Stopped: <rect x="1.500" y="1.500" width="7" height="7" fill="currentColor" />,
  }[phase] ?? <circle cx="5" cy="5" r="2" fill="currentColor" />;
  return (
    <svg viewBox="0 0 10 10" aria-hidden="true">
      {shape}
    </svg>
  );
}
