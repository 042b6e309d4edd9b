// Fastify + Mercurius with its compiled queries and its document cache + better-sqlite3, as their guides recommend.
//     node mercurius.mjs PORT DATABASE
import Database from 'better-sqlite3'
import { Eta } from 'eta'
import Fastify from 'fastify'
import mercurius from 'mercurius'

const [port, path] = process.argv.slice(2)
const database = new Database(path)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.pragma('cache_size = -65536')
database.pragma('mmap_size = 268435456')
const allUsers = database.prepare('SELECT id, name, email FROM users ORDER BY id')
const userById = database.prepare('SELECT id, name, email FROM users WHERE id = ?')
const insertUser = database.prepare('INSERT INTO users (name, email) VALUES (?, ?)')
const allItems = database.prepare('SELECT text FROM items ORDER BY id').pluck()
const firstProducts = database.prepare('SELECT id, name, category, price, description FROM products ORDER BY id LIMIT 20')
const usersOfItem = database.prepare('SELECT id, name, email FROM users WHERE id IN (SELECT user_id FROM orders WHERE item = ?) ORDER BY id LIMIT 20')
const ordersByStatus = database.prepare('SELECT status, count(*) AS count, sum(quantity) AS sum, max(quantity) AS max FROM orders GROUP BY status')

const eta = new Eta({ cache: true, autoEscape: true })
eta.loadTemplate('@products', `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Products</title></head>
<body><h1>Products</h1><table>
<tr><th>Id</th><th>Name</th><th>Category</th><th>Price</th><th>Description</th></tr>
<% for (const p of it.products) { %><tr><td><%= p.id %></td><td><a href="/products/<%= p.id %>"><%= p.name %></a></td><td><%= p.category %></td><td><%= p.price %></td><td><%= p.description %></td></tr>
<% } %></table></body></html>
`)

const app = Fastify({ logger: false })
app.register(mercurius, {
  schema: `
    type User { id: ID! name: String! email: String! }
    type Query { getAllUsers: [User] getUserById(id: ID!): User }
    type Mutation { createUser(name: String!, email: String!): User }
    type Subscription { userCreated: User }
  `,
  jit: 1,
  cache: 1024,
  subscription: true,
  resolvers: {
    Query: {
      getAllUsers: () => allUsers.all(),
      getUserById: (_, { id }) => userById.get(+id) ?? null,
    },
    Mutation: {
      createUser: (_, { name, email }, { pubsub }) => {
        const user = { id: insertUser.run(name, email).lastInsertRowid, name, email }
        pubsub.publish({ topic: 'USER_CREATED', payload: { userCreated: user } })
        return user
      },
    },
    Subscription: { userCreated: { subscribe: (_root, _arguments, { pubsub }) => pubsub.subscribe('USER_CREATED') } },
  },
})
const texts = { response: { 200: { type: 'array', items: { type: 'string' } } } }
app.get('/hello', (_request, reply) => { reply.type('text/plain').send('Hello, World!') })
app.get('/items', { schema: texts }, (_request, reply) => { reply.send(allItems.all()) })
const rows = (properties) => ({ response: { 200: { type: 'array', items: { type: 'object', properties } } } })
const text = { type: 'string' }, integer = { type: 'integer' }
app.get('/users', { schema: rows({ id: text, name: text, email: text }) }, (request, reply) => {
  reply.send(usersOfItem.all(request.query['orders.item']))
})
app.get('/orders', { schema: rows({ status: text, count: integer, sum: integer, max: integer }) }, (_request, reply) => {
  reply.send(ordersByStatus.all())
})
app.get('/products', (_request, reply) => {
  reply.type('text/html; charset=utf-8').send(eta.render('@products', { products: firstProducts.all() }))
})
await app.listen({ port: +port, host: '127.0.0.1' })
