// Real input for the demo and the benchmarks: three million flights of the npm package vega-datasets, as plain values.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { FloeError } from '../base/error.ts';

export interface Flight {
  /** Milliseconds since the epoch. */
  readonly date: number;
  readonly delay: number;
  readonly distance: number;
  readonly origin: string;
  readonly destination: string;
}

export const FLIGHT_SCHEMA = JSON.stringify({
  type: 'record',
  name: 'Flight',
  namespace: 'floe.demo',
  fields: [
    { name: 'date', type: { type: 'long', logicalType: 'timestamp-millis' } },
    { name: 'delay', type: 'long' },
    { name: 'distance', type: 'long' },
    { name: 'origin', type: 'string' },
    { name: 'destination', type: 'string' },
  ],
});

/** Where the Parquet file lies. The package exports its scripts only, so the folder is looked up. */
export function flightsFile(): string {
  const folders = createRequire(import.meta.url).resolve.paths('vega-datasets') ?? [];
  const paths = folders.map((folder) =>
    join(folder, 'vega-datasets', 'data', 'flights-3m.parquet'),
  );
  const found = paths.find((path) => existsSync(path));
  if (found === undefined)
    throw new FloeError('not-found', 'the package vega-datasets is not installed: npm ci');
  return found;
}

/** The first `rows` flights in arrays of at most `batch`. */
export async function* readFlights(rows: number, batch: number): AsyncGenerator<Flight[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const result = await connection.stream(
      `SELECT epoch_ms(date::TIMESTAMP)::DOUBLE, delay::INT, distance::INT, origin, destination
       FROM read_parquet('${flightsFile()}') LIMIT ${rows}`,
    );
    let flights: Flight[] = [];
    for (
      let chunk = await result.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await result.fetchChunk()
    ) {
      const [date, delay, distance, origin, destination] = chunk.getColumns() as [
        number[],
        number[],
        number[],
        string[],
        string[],
      ];
      for (let i = 0; i < chunk.rowCount; i += 1) {
        flights.push({
          date: date[i]!,
          delay: delay[i]!,
          distance: distance[i]!,
          origin: origin[i]!,
          destination: destination[i]!,
        });
        if (flights.length === batch) {
          yield flights;
          flights = [];
        }
      }
    }
    if (flights.length > 0) yield flights;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
