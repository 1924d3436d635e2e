// Makes sigv4.json: requests signed by two well-kept implementations of AWS Signature Version 4, each with two keys.
//
//   npm install @smithy/signature-v4@5.7.5 @aws-crypto/sha256-js@5.2.0 aws4@1.13.2 && node make_sigv4.mjs > sigv4.json
import {createRequire} from 'node:module';
import {SignatureV4} from '@smithy/signature-v4';
import {Sha256} from '@aws-crypto/sha256-js';
import {createHash} from 'node:crypto';
const aws4 = createRequire(import.meta.url)('aws4');

const keys = [
  {id: 'AKIAIOSFODNN7EXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'},
  {id: 'AKIAPLACEHOLDER12345', secret: 'placeholder0placeholder1placeholder2plac'},
];
const date = new Date('2026-11-29T12:34:56Z');
const sha = (text) => createHash('sha256').update(text).digest('hex');

// service, method, path as it is sent, query, headers, body
const requests = [
  ['s3', 'GET', '/bucket/plain.txt', {}, {}, ''],
  ['s3', 'GET', '/bucket/with%20space%2Band/%E2%82%AC.txt', {}, {range: 'bytes=0-9'}, ''],
  ['s3', 'GET', '/bucket', {'list-type': '2', prefix: 'a/b c', delimiter: '/', 'max-keys': '10'}, {}, ''],
  ['s3', 'GET', '/bucket/key', {versionId: 'x=y&z', empty: ''}, {}, ''],
  ['s3', 'PUT', '/bucket/key', {}, {'content-type': 'text/plain', 'x-amz-meta-note': '  two   blanks  '}, 'hello'],
  ['s3', 'DELETE', '/bucket/a//b', {}, {}, ''],
  ['s3', 'POST', '/bucket/key', {uploads: ''}, {}, ''],
  ['dynamodb', 'POST', '/', {}, {'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'DynamoDB_20120810.GetItem'},
    '{"TableName":"t"}'],
  ['sts', 'POST', '/', {}, {'content-type': 'application/x-www-form-urlencoded'}, 'Action=GetCallerIdentity&Version=2011-06-15'],
  ['lambda', 'POST', '/2015-03-31/functions/arn%3Aaws%3Alambda%3Ax/invocations', {Qualifier: '$LATEST'}, {}, '{}'],
  ['execute-api', 'GET', '/prod/items', {b: '2', a: '1', 'a b': 'c~d'}, {accept: 'application/json'}, ''],
  ['bedrock', 'POST', '/model/anthropic.claude-v2%3A1/invoke', {}, {'content-type': 'application/json'}, '{"prompt":"x"}'],
];

const cases = [];
for (const [service, method, path, query, headers, body] of requests) {
  const host = service + '.eu-central-1.amazonaws.com';
  const search = Object.entries(query).map(([k, v]) => encodeURIComponent(k) + '=' + encodeURIComponent(v)).join('&');
  const base = {service, method, target: path + (search && '?' + search), host, body};
  const s3 = service === 's3';

  const smithy = [];
  for (const {id, secret} of keys) {
    const signer = new SignatureV4({service, region: 'eu-central-1', sha256: Sha256, uriEscapePath: !s3, applyChecksum: s3,
      credentials: {accessKeyId: id, secretAccessKey: secret}});
    const signed = await signer.sign({method, protocol: 'https:', hostname: host, path, query, body,
      headers: {host, ...headers}}, {signingDate: date});
    smithy.push(signed.headers);
  }
  cases.push({...base, by: '@smithy/signature-v4', signed: smithy});

  const other = keys.map(({id, secret}) => aws4.sign({service, region: 'eu-central-1', method, host, path: base.target, body,
    headers: {...headers, 'X-Amz-Date': '20261129T123456Z', ...(s3 ? {'X-Amz-Content-Sha256': sha(body)} : {})}},
    {accessKeyId: id, secretAccessKey: secret}).headers);
  cases.push({...base, by: 'aws4', signed: other});

  if (!s3 || method !== 'GET') continue;
  const presigned = [];
  for (const {id, secret} of keys) {
    const signer = new SignatureV4({service, region: 'eu-central-1', sha256: Sha256, uriEscapePath: false,
      credentials: {accessKeyId: id, secretAccessKey: secret}});
    const signed = await signer.presign({method, protocol: 'https:', hostname: host, path, query, headers: {host}},
      {signingDate: date, expiresIn: 300});
    presigned.push(path + '?' + Object.entries(signed.query).map(([k, v]) => encodeURIComponent(k) + '=' +
      encodeURIComponent(v)).join('&'));
  }
  cases.push({...base, by: '@smithy/signature-v4 presign', targets: presigned});
}
console.log(JSON.stringify({keys, cases}, null, 1));
