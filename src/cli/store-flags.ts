// The flags by which commands are told where a node's or a cluster's stores are, as `floe serve` is; options.ts reads them.
// In two parts, so that a command's own flags stand between them in its help.
import type { Command } from 'commander';

export interface StoreTexts {
  /** Whose storage it is. Default: that of a cluster. */
  readonly storage?: string;
  /** Default: of one bucket. */
  readonly s3?: string;
}

export function withStores(
  command: Command,
  {
    storage = 'of a cluster: s3://bucket/prefix or file:///folder',
    s3 = 'of the bucket, when it is not at AWS',
  }: StoreTexts = {},
): Command {
  return command
    .option('--data-dir <dir>', 'of a node alone (default: ./floe-data)')
    .option('--metadata <url>', 'of a cluster: postgres://user:password@host/database')
    .option('--storage <uri>', storage)
    .option('--s3-endpoint <url>', s3);
}

export function withSettings(command: Command): Command {
  return command
    .option('--config <file.yaml>', 'options and settings by name')
    .option('--set <key=value>', 'a setting; may be repeated', collect, []);
}

/** Of an option that may be repeated. */
export function collect(value: string, values: readonly string[]): readonly string[] {
  return [...values, value];
}
