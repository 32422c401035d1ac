// Starts the viewer with the OpenAPI document.

// The viewer would send the examples of optional parameters, which would filter lists.
function leaveOptionalParametersEmpty(api) {
  const resolved = (schema) => schema?.$ref?.slice(2).split('/').reduce((part, name) => part?.[name], api) ?? schema
  const operations = Object.values(api.paths).flatMap((item) => Object.values(item))
  const parameters = operations.flatMap((operation) => operation.parameters ?? [])
  for (const parameter of parameters.concat(Object.values(api.components?.parameters ?? {}))) {
    if (parameter.in === 'query' && !parameter.required && resolved(parameter.schema)?.examples) {
      parameter.examples = { default: { value: '' } }
    }
  }
}

const url = new URL('openapi.json', location.href)
let isLoaded = false

// The viewer's first request is for the document.
async function customFetch(...request) {
  const response = await fetch(...request)
  if (isLoaded || !response.ok) return response
  isLoaded = true
  const api = await response.json()
  leaveOptionalParametersEmpty(api)
  return new Response(JSON.stringify(api), { headers: { 'content-type': 'application/json' } })
}

document.getElementById('docs').replaceChildren()
Scalar.createApiReference('#docs', {
  url: url.href,
  customFetch,
  // Requests go to this page's origin, regardless of the document's servers.
  servers: [{ url: new URL('.', url).href.replace(/\/$/, '') }],
  authentication: { preferredSecurityScheme: 'api_key' },
  // Store nothing, and load nothing from other origins.
  persistAuth: false,
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'direct',
})
