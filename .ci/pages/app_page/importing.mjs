// Brings lists in.
import assert from 'node:assert/strict'
import { PHONE, Visit, sees, unique, until } from './visit.mjs'

const choose = (page, name, text, encoding = 'utf8') =>
  page.getByLabel('File').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text, encoding) })

const found = (api, parameters) => api.get(`/assets?limit=100&${new URLSearchParams(parameters)}`)
const isDone = (visit) => sees(visit.page.getByRole('heading', { name: 'Done' }), 'the import is not done')

/** A German list as spreadsheet programs save it, dropped on the inventory: looked at, corrected, and imported. */
async function germanList(scene) {
  const { api } = scene
  const mark = unique('G').replace(/\W/g, '')
  const rows = Array.from({ length: 250 }, (_, n) => `Gerät ${n};${mark}-${n};Büro / 2.${n % 9};${(n % 28) + 1}.0${(n % 9) + 1}.2024;1.${100 + n},50;${n % 3 ? 'Lager' : 'Im Einsatz'};x`)
  rows[7] = `Gerät 7;${mark}-7;Büro;31.02.2024;1.107,50;Lager;x`
  rows[8] = `"Gerät; 8";${mark}-8;Büro;01.02.2024;1.108,50;Wackelkontakt;x`
  rows[9] = `Gerät 9;${mark}-240;Büro;01.02.2024;1.109,50;Lager;x`
  const text = `Inventar 2024;;;;;;\r\n\r\nBezeichnung;Seriennummer;Standort;Kaufdatum;Preis brutto;Status;Ampel\r\n${rows.join('\r\n')}\r\n`
  const visit = await Visit.open(scene)
  const { page } = visit
  await sees(page.locator('a.row'), 'the list is empty')
  const bytes = [...Buffer.from(text, 'latin1')]
  await page.evaluate((bytes) => {
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(new File([new Uint8Array(bytes)], 'Inventar.csv'))
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }))
  }, bytes)
  await sees(page.getByText('250 rows'), 'the file is not looked at')
  await visit.look('import-proposal')
  assert.equal(await page.getByLabel('Ampel').inputValue(), '', 'a column of unknown meaning is imported')
  await page.getByLabel('Ampel').selectOption({ label: 'Notes' })
  await until(async () => (await page.getByLabel('Ampel').inputValue()) === 'notes', 'the decision is lost')
  await visit.press('See what would happen')
  await sees(page.getByText('Refused rows'), 'nothing is refused')
  await visit.look('import-check')
  assert.equal((await found(api, { q: mark })).length, 0, 'a look writes something')
  const meaning = page.getByLabel('Wackelkontakt means')
  await meaning.selectOption('in_service')
  await until(async () => !(await meaning.count()), 'the meaning is not taken')
  await visit.press('Import these rows without the refused cells')
  await sees(page.getByText('1 cell is left out'), 'the cell is not left out')
  await visit.press(/Import 248 rows/)
  await isDone(visit)
  await visit.look('import-done')
  const all = []
  for (const page of [1, 2, 3]) all.push(...(await found(api, { q: mark, page })))
  assert.equal(all.length, 248, 'not all rows are in')
  const one = (n) => all.find(({ serial_number: serial }) => serial === `${mark}-${n}`)
  assert.deepEqual([one(0).name, one(0).location, one(0).purchase_date, String(one(0).purchase_price), one(0).status, one(0).notes], ['Gerät 0', 'Büro / 2.0', '2024-01-01', '1100.5', 'in_use', 'x'])
  assert.deepEqual([one(7).purchase_date, one(8).name, one(8).status, one(9), one(240)], [null, 'Gerät; 8', 'in_service', undefined, undefined])
  const saving = page.waitForEvent('download')
  await visit.press('Save the refused rows')
  const stream = await (await saving).createReadStream()
  const saved = (await stream.toArray()).join('')
  assert.ok(saved.includes('Bezeichnung;Seriennummer') && saved.includes(`${mark}-240`) && saved.includes('Reason') && saved.trim().split(/\r?\n/).length === 5, saved)
  // The same file again changes nothing.
  await visit.press('Another file')
  await choose(page, 'Inventar.csv', text, 'latin1')
  await sees(page.getByText('250 rows'), 'the file is not looked at')
  await visit.press('See what would happen')
  await sees(page.getByText('246 unchanged'), 'the second look finds other values than the import wrote')
}

/** The connection is lost and the page loaded again in the middle of an import. */
async function interrupted(scene) {
  const { api } = scene
  const mark = unique('H').replace(/\W/g, '')
  const text = `name,serial_number\n${Array.from({ length: 650 }, (_, n) => `Thing ${n},${mark}-${n}`).join('\n')}\n`
  const visit = await Visit.open(scene, '#/import', { ...PHONE, failures: ['net::ERR', 'Failed'] })
  const { page } = visit
  await visit.look('import-file')
  await choose(page, 'things.csv', text)
  await sees(page.getByText('650 rows'), 'the file is not looked at')
  await visit.look('import-phone')
  await visit.press('See what would happen')
  let parts = 0
  // The answer to the second part is lost.
  await page.route(/\/assets\/import$/, async (route) => {
    parts += 1
    if (parts !== 2) return route.continue()
    await route.fetch()
    await route.abort()
  })
  await visit.press('Import 650 rows')
  await sees(page.getByText('No connection'), 'a lost answer is not told')
  await page.reload()
  await sees(page.getByText(/things.csv.*1.* of .*4/), 'the import is forgotten')
  await page.unroute(/\/assets\/import$/)
  await visit.press('Resume')
  await isDone(visit)
  const { total } = (await (await api.send('GET', `/assets?q=${mark}&limit=1`)).json()).meta
  assert.equal(total, 650, 'a row is imported twice or not at all')
  assert.deepEqual(await page.evaluate(() => indexedDB.databases()), [], 'the file is kept')
}

/** People are recognized, and a workbook is refused in words. */
async function peopleList(scene) {
  const { api } = scene
  const mark = unique('p').replace(/\W/g, '').toLowerCase()
  const visit = await Visit.open(scene, '#/import')
  const { page } = visit
  await page.getByLabel('File').setInputFiles({ name: 'a.xlsx', mimeType: '', buffer: Buffer.from('PK\x03\x04xx') })
  await sees(page.getByText('Save it as CSV'), 'a workbook is not refused')
  await choose(page, 'people.json', JSON.stringify([{ mail: `${mark}@example.com`, 'First name': 'Ada', 'Last name': mark }], null, 2))
  await until(async () => (await page.getByLabel('The list is of').inputValue()) === 'users', 'people are not recognized')
  await visit.press('See what would happen')
  await visit.press('Import 1 row')
  await isDone(visit)
  assert.equal((await api.user(`${mark}@example.com`)).display_name, `Ada ${mark}`)
}

/** A quote that isn't closed joins rows here, but not in the service. None of them is left out without a word. */
async function openQuote(scene) {
  const mark = unique('Q').replace(/\W/g, '')
  const visit = await Visit.open(scene, '#/import')
  const { page } = visit
  await choose(page, 'screens.csv', `name,serial_number\n"24 Monitor,${mark}1\nLaptop,${mark}2\n"27 Monitor,${mark}3\n`)
  await visit.press('See what would happen')
  await sees(page.getByText('a quote in these rows isn’t closed'), 'rows are left out without a word')
  await sees(page.getByText('Nothing to import.'), 'rows are offered that would not be imported')
}

export const imports = {
  'a list with an open quote': openQuote, 'a German list': germanList, 'an import that is interrupted': interrupted, 'a list of people': peopleList }
