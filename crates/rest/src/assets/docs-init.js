// Starts Swagger UI on the document of this origin.
'use strict';

SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  // The badge would ask a validator elsewhere.
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  // An answer without content leaves nothing to choose, and "anything" would be a page.
  requestInterceptor: (request) => {
    const name = Object.keys(request.headers ?? {}).find((header) => header.toLowerCase() === 'accept');
    if (name && request.headers[name] === '*/*') request.headers[name] = 'application/json';
    return request;
  },
});
