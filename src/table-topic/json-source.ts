// JSON values as sources of columns.
import { FloeError } from '../base/error.ts';
import type { Converter, ConverterTarget } from './converters.ts';

export function compileJsonValue(_target: ConverterTarget): Converter {
  throw new FloeError('unsupported', 'JSON columns are not there yet');
}
