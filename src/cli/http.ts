// Starts a fastify server on an address; a taken port is one clear line.
import type { FastifyInstance } from 'fastify';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import { type Address, formatAddress } from './address.ts';

export interface HttpServer extends Component {
  /** HOST:PORT as bound. */
  readonly address: string;
}

/** Listens. @throws FloeError `conflict` naming flag and address when the port is taken. */
export async function startHttp(
  flag: string,
  app: FastifyInstance,
  address: Address,
): Promise<HttpServer> {
  try {
    await app.listen({ host: address.host, port: address.port });
  } catch (caught) {
    await app.close();
    throw portError(flag, address, caught);
  }
  const { port } = app.server.address() as { port: number };
  return {
    address: formatAddress({ host: address.host, port }),
    async stop() {
      // Idle keep-alive connections would hold close() up until their clients go.
      app.server.closeIdleConnections();
      await app.close();
    },
  };
}

/** What a failed listen says. */
export function portError(flag: string, address: Address, caught: unknown): FloeError {
  const error = FloeError.from(caught);
  if (error.code !== 'conflict') return error;
  const where = formatAddress(address);
  return new FloeError(
    'conflict',
    `${flag} ${where}: the address is in use; choose another one or stop what listens there`,
    {
      cause: caught,
    },
  );
}
