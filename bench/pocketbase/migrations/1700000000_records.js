// The records of bench/harness/servers.py, made at the first start. PocketBase keeps `users` for itself: `members` it is.
migrate((app) => {
  const settings = app.settings()
  settings.logs.maxDays = 0
  app.save(settings)
  const open = { type: "base", listRule: "", viewRule: "", createRule: "" }
  const text = (name) => ({ name, type: "text" })
  const make = (name, fields) => {
    app.save(new Collection({ ...open, name, fields: fields.map(text) }))
    return app.findCollectionByNameOrId(name)
  }
  const add = (collection, values) => {
    const record = new Record(collection)
    for (const [name, value] of Object.entries(values)) record.set(name, value)
    app.save(record)
  }
  const members = make("members", ["name", "email"])
  const items = make("items", ["text"])
  const products = make("products", ["name", "category", "price", "description"])
  const id = (letter, number) => letter + String(number).padStart(14, "0")
  for (let n = 1; n <= 1000; n++) add(members, { id: id("u", n), name: `User ${n}`, email: `user${n}@example.com` })
  for (let n = 1; n <= 100; n++) add(items, { text: `Item number ${n}` })
  for (let n = 1; n <= 20; n++) {
    add(products, { id: id("p", n), name: `Product ${n}`, category: ["Desk", "Kitchen", "Garden"][n % 3],
      price: (n * 9.99).toFixed(2), description: `What product ${n} is good for` })
  }
})
