// Settings of the wire layer: how much a peer may send at once, and into how much it may unfold.
import { int } from '../base/settings.ts';

export const protocolSettings = {
  'socket.request.max.bytes': int({
    default: 104_857_600,
    min: 1_024,
    max: 0x7fffffff,
    doc:
      'Largest request in bytes; a connection that announces more is closed. The default is Kafka’s: clients ' +
      'size their requests by it.',
  }),
  'batch.decompressed.max.bytes': int({
    default: 67_108_864,
    min: 65_536,
    max: 0x7fffffff,
    doc:
      'Most bytes that one compressed batch may unfold into. Producers compress what fits their batch size, ' +
      'usually well under 1 MiB; the default leaves room for ratios of 64 and stops decompression bombs.',
  }),
};
