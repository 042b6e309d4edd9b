// The two addresses that PocketBase has no endpoint of its own for.
routerAdd("GET", "/hello", (event) => event.string(200, "Hello, World!"))
routerAdd("GET", "/products", (event) => {
  const records = $app.findRecordsByFilter("products", "", "+id", 20, 0)
  const products = records.map((record) => record.publicExport())
  return event.html(200, $template.loadFiles(`${__hooks}/products.html`).render({ products }))
})
