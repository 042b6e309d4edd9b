// The records of bench/harness/servers.py, made at the first start. PocketBase keeps `users` for itself: `members` it is.
migrate((app) => {
  const settings = app.settings()
  settings.logs.maxDays = 0
  app.save(settings)
  const open = { type: "base", listRule: "", viewRule: "", createRule: "" }
  const text = (name) => ({ name, type: "text" })
  const make = (name, fields, more = {}) => {
    app.save(new Collection({ ...open, name, fields, ...more }))
    return app.findCollectionByNameOrId(name)
  }
  const add = (collection, values) => {
    const record = new Record(collection)
    for (const [name, value] of Object.entries(values)) record.set(name, value)
    app.save(record)
  }
  const members = make("members", ["name", "email"].map(text))
  const items = make("items", ["text"].map(text))
  const products = make("products", ["name", "category", "price", "description"].map(text))
  const orders = make("orders", [
    { name: "user", type: "relation", collectionId: members.id, maxSelect: 1 }, text("item"),
    { name: "quantity", type: "number" }, text("status"),
  ], { indexes: ["CREATE INDEX orders_user ON orders (user)", "CREATE INDEX orders_item ON orders (item)"] })
  app.save(new Collection({ name: "statuses", type: "view", listRule: "", viewQuery:
    "SELECT status AS id, count(*) AS count, sum(quantity) AS sum, max(quantity) AS max FROM orders GROUP BY status" }))
  const id = (letter, number) => letter + String(number).padStart(14, "0")
  for (let n = 1; n <= 1000; n++) add(members, { id: id("u", n), name: `User ${n}`, email: `user${n}@example.com` })
  for (let n = 1; n <= 2000; n++) {
    add(orders, { id: id("o", n), user: id("u", Math.ceil(n / 2)), item: `Item ${(n - 1) % 100 + 1}`, quantity: 1 + n % 9,
      status: ["NEW", "PAID", "SHIPPED"][n % 3] })
  }
  for (let n = 1; n <= 100; n++) add(items, { text: `Item number ${n}` })
  for (let n = 1; n <= 20; n++) {
    add(products, { id: id("p", n), name: `Product ${n}`, category: ["Desk", "Kitchen", "Garden"][n % 3],
      price: (n * 9.99).toFixed(2), description: `What product ${n} is good for` })
  }
})
