// The GPUs of each node as squares: how much of each GPU is used, and by which jobs.
import type {Node} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {to} from '../app/router';
import {Link, useFirst} from './parts';

export function GpuMap({nodes}: {nodes: Node[]}) {
  const listed = useFirst(
    nodes.filter((node) => node.devices.length > 0),
    100,
  );
  return (
    <>
      <ul class="gpu-map">
        {listed.shown.map((node) => (
          <li key={node.name}>
            <Link to={to(['nodes', node.name])} class="node-name cut">
              {node.name}
            </Link>
            <span class="squares">
              {node.devices.map((device) => {
                const used = 1 - Math.max(0, device.free);
                const off = node.state !== 'ready' && used === 0;
                const text = `GPU ${device.index}, ${device.model}${device.memory_bytes ? ` ${bytes_text(device.memory_bytes)}` : ''}: ${used ? `${amount_text(used)} used${device.jobs.length ? ` by ${device.jobs.join(', ')}` : ''}` : off ? node.state : 'free'}`;
                return (
                  <span key={device.index} class={`square ${off ? 'off' : ''}`} title={text}>
                    <i style={{height: `${used * 100}%`}} />
                    <span class="hidden-text">{text}</span>
                  </span>
                );
              })}
            </span>
          </li>
        ))}
      </ul>
      {listed.more}
    </>
  );
}
