// Browser part of .ci/pages/receipt-picture. Arguments: the dev server's ready file, and the folder for the picture.
import { writeFileSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { PNG } from 'pngjs'
import { Api } from './api.mjs'

const [readyFile, folder] = process.argv.slice(2)
const api = new Api(readyFile)
const args = ['--no-sandbox', '--disable-lcd-text']
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args })
const page = await browser.newPage({ viewport: { width: 760, height: 1354 } })
const signature = await page.evaluate(() => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 420, height: 130 })
  const ink = Object.assign(canvas.getContext('2d'), { strokeStyle: '#124', lineCap: 'round', lineWidth: 3.4 })
  ink.stroke(
    new Path2D(`M30 98C50 20 66 10 72 34C78 60 60 104 50 92C44 82 96 52 104 66C108 80 84 96 92 100C104 102 118 60
      124 62C128 66 112 100 122 100C136 98 142 62 150 64C156 68 140 100 152 100C166 98 176 40 184 18C186 40 164 96 176 100
      C190 102 204 62 212 66C216 72 198 98 210 100C226 100 236 66 244 66C250 70 236 98 248 98C266 96 280 70 300 72
      C330 76 344 92 392 60`),
  )
  ink.lineWidth = 2.2
  ink.stroke(new Path2D('M150 116C220 106 300 108 372 98'))
  return canvas.toDataURL()
})

await api.patch('/settings', { name: 'Acme Ltd', time_zone: 'Europe/Berlin' })
const [asset] = await api.get('/assets?q=macbook&status=preparing&limit=1')
const [ada, grace] = [await api.user('ada.lovelace@example.com'), await api.user('grace.hopper@example.com')]
const [onboarding] = await api.get('/processes?slug=employee-onboarding')
// The receipt shows this user's name.
const desk = await api.post('/keys', { name: 'desk', scopes: ['processes:read', 'processes:write'], user_id: grace.id })
const handover = ['Device', 'Power supply', 'Accessories', 'Usage policy explained']
const start = { asset_id: asset.id, through: 'complete', step_data: { employee: ada.id, handover, signature } }
const { id } = await api.call('POST', `/processes/${onboarding.id}/start`, start, desk.api_key)
const receipt = await api.send('GET', `/processes/instances/${id}/receipt?format=html`)
await page.setContent(await receipt.text())
const picture = PNG.sync.read(await page.screenshot())
await browser.close()
// In 16 shades of gray, to keep the file small.
picture.data.forEach((value, at) => (picture.data[at] = Math.round(value / 17) * 17))
writeFileSync(`${folder}/receipt.png`, PNG.sync.write(picture, { colorType: 0, deflateLevel: 9 }))
