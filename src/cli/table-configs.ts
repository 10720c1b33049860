// Table topics' configs as the broker's topic configs take them: the one place where the two meet.
import { FloeError } from '../base/error.ts';
import type { Setting } from '../base/settings.ts';
import type { TopicConfigExtension } from '../broker/index.ts';
import type { Catalog } from '../catalog/index.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { SchemaSource } from '../schema-registry/index.ts';
import {
  createTopicConfigValidator,
  isTableTopicConfig,
  parseTopicConfig,
  topicConfigs,
} from '../table-topic/index.ts';

export interface TableConfigDeps {
  readonly directory: TopicDirectory;
  readonly schemas: SchemaSource;
  readonly catalog: Pick<Catalog, 'checkTable'>;
}

export function tableTopicConfigs(deps: TableConfigDeps): TopicConfigExtension {
  const validator = createTopicConfigValidator(deps);
  return {
    definitions: topicConfigs,
    // Families of names (table.topic.properties.*), and names that are understood and refused with a reason.
    find: (name) => (isTableTopicConfig(name) ? [name, judgedBy(name)] : undefined),
    validate: ({ topicName, config, mayWrite }) => validator.validate(topicName, config, mayWrite),
  };
}

function judgedBy(name: string): Setting<string> {
  return {
    type: 'string',
    default: '',
    doc: 'A config of table topics.',
    parse(value) {
      try {
        return parseTopicConfig(name, value).value;
      } catch (caught) {
        // Who parses a setting puts its name in front again.
        const { code, message } = FloeError.from(caught);
        throw new FloeError(
          code,
          message.startsWith(`${name}: `) ? message.slice(name.length + 2) : message,
          { cause: caught },
        );
      }
    },
    format: String,
  };
}
