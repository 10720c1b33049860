# The object store contract against a real S3 server on loopback.
npm run --silent test:s3
