// How the commands show a secured server who they are: --user, --password, --mechanism, --ca and --tls, or the
// environment. One place for the Kafka clients, the wire client and HTTP. Set once, before the command runs.
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type Command, Option } from 'commander';
import { FloeError } from '../base/error.ts';

const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const;

export interface ClientAuth {
  readonly tls: boolean;
  /** Undefined: nobody asks. */
  readonly login: Login | undefined;
}

export interface Login {
  readonly user: string;
  readonly password: string;
  readonly mechanism: (typeof MECHANISMS)[number];
}

/** As commander hands them over. */
interface AuthFlags {
  readonly user?: string;
  readonly password?: string;
  readonly mechanism?: Login['mechanism'];
  readonly ca?: string;
  readonly tls?: boolean;
}

let current: ClientAuth = { tls: false, login: undefined };

/** What the command that runs was told. */
export const clientAuth = (): ClientAuth => current;

/** Gives every command that talks to a server the options, and takes them before it runs. */
export function addAuthOptions(program: Command): void {
  for (const command of program.commands) offer(command);
  program.hook('preAction', (_program, action) => use(action.opts<AuthFlags>()));
}

function offer(command: Command): void {
  for (const inner of command.commands) offer(inner);
  if (!command.options.some(({ long }) => long === '--server')) return;
  command
    .addOption(new Option('--user <name>', 'who you are').env('FLOE_USER'))
    .addOption(
      new Option('--password <text>', 'better in the environment than here').env('FLOE_PASSWORD'),
    )
    .addOption(
      new Option('--mechanism <name>', 'how to show it to Kafka (default: SCRAM-SHA-256)')
        .choices(MECHANISMS)
        .env('FLOE_MECHANISM'),
    )
    .addOption(
      new Option('--ca <file.pem>', "the authority of the server's certificate; implies --tls").env(
        'FLOE_CA',
      ),
    )
    .option('--tls', 'speak TLS');
}

function use({ user, password, mechanism = 'SCRAM-SHA-256', ca, tls }: AuthFlags): void {
  if (user === undefined && password !== undefined) {
    throw new FloeError('invalid', '--password without --user');
  }
  if (user !== undefined && password === undefined) {
    throw new FloeError('invalid', '--user without a password: set FLOE_PASSWORD, or --password');
  }
  if (ca !== undefined && ca !== '') trust(ca);
  const login = user === undefined ? undefined : { user, password: password!, mechanism };
  current = { tls: tls === true || (ca ?? '') !== '', login };
}

/** For every TLS client of the process. */
function trust(path: string): void {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (caught) {
    throw FloeError.from(caught, `--ca ${path}`);
  }
  setDefaultCACertificates([...getCACertificates('default'), pem]);
}

/** What to do about a certificate that isn't trusted; undefined where that isn't the trouble. */
export function certificateFault(caught: unknown): string | undefined {
  const { code, message } = (caught ?? {}) as {
    readonly code?: unknown;
    readonly message?: string;
  };
  if (typeof code !== 'string' || !/CERT|SELF_SIGNED|ALTNAME|ISSUER/.test(code)) return undefined;
  return `its certificate is not trusted (${message}): name its authority with --ca`;
}
