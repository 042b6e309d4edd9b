// Starts Swagger UI on the document of this origin.
'use strict';

SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  // The badge would send requests to an external validator.
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  // For a response without content Swagger UI sends Accept: */*, which would get a page.
  requestInterceptor: (request) => {
    const name = Object.keys(request.headers ?? {}).find((header) => header.toLowerCase() === 'accept');
    if (name && request.headers[name] === '*/*') request.headers[name] = 'application/json';
    return request;
  },
});
