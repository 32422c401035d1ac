// People: their current and former assets, and their offboarding.
import { endOf, get, instanceName, intent, may, plan } from './api.js'
import { MOST, assetLink, assetList, reason } from './asset.js'
import { button, h, hint, own, show } from './elements.js'
import { choice, select } from './fields.js'
import { attempt, dayField, empty, field, pager, planBox, searchField } from './form.js'
import { builtIn, card, closed, colon, facts, go, heading, link, runPath, skeleton, stepOf } from './page.js'
import { latest } from './requests.js'
import { sentence, t } from './texts.js'
import { ago } from './values.js'

/** Maximum number of processes to name, each of which is a request. */
const MAX_NAMED = 20

const state = ({ is_active }) => t(is_active ? 'active' : 'inactive')

export function people(main, params, signal) {
  const search = searchField(params.q, t('person-placeholder'), (q) => go('people', { q }, true), signal)
  const list = h('div.list', skeleton(8))
  show(main, h('h1.unseen', { tabIndex: -1 }, t('nav.people')), h('div.with-action', search, link(t('new-person'), 'new-person', {}, 'button'), !closed.has('import') && link(t('bring-list'), 'import')), list)
  const newList = latest(signal)
  async function showList() {
    const listed = newList()
    await attempt(list, async () => {
      const { data, meta } = await get('/users', listed, { q: params.q, page: Number(params.page) || 1, limit: 50 })
      const row = (user) => h('tr',
        h('td.c-name', link(own(user.display_name), `person/${user.id}`, {}, 'row'), own(user.email, 'hint')), h('td', t(`role.${user.role}`)), h('td', state(user)))
      show(list,
        h('p.totals', { role: 'status' }, t('people', { count: meta.total })),
        data.length === 0 ? empty(t('nothing-found'))
          : h('table.people', h('caption.unseen', t('nav.people')),
            h('thead', h('tr', [t('field.name'), t('role'), t('field.status')].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', data.map(row))),
        pager(meta, (page, text) => link(text, 'people', { ...params, page }, 'button')))
    }, showList)
  }
  return { title: t('nav.people'), ready: showList(), update: (next) => ((params = next), showList()) }
}

export async function person(main, params, signal, [, id]) {
  let { data: user } = await get(`/users/${id}`, signal)
  const has = h('div', skeleton(3))
  const day = dayField(params.day, (day) => go(`person/${id}`, { day }, true))
  const about = h('div')
  const leaving = h('div')
  const processes = h('div')
  const mayOffboard = ['users:write', 'processes:write', 'assets:read'].every(may)
  show(main,
    h('div.title', heading(own(user.display_name)),
      user.is_active && link(t('nav.hand-over'), 'hand-over', { person: id }, 'button')),
    h('div.columns', card(t('assets-of'), h('div.as-of', field(t('as-of'), day)), has), h('div.side', card(t('field.assigned_to'), about), processes, mayOffboard && card(t('offboard'), leaving))))

  /** Changes the person in place. The page's title and heading follow. */
  async function change() {
    const back = () => {
      showActions()
      about.querySelector('button')?.focus()
    }
    const { changePerson } = await import('./personForm.js')
    const element = await changePerson(id, signal, (saved) => {
      named(saved)
      back()
    }, back)
    element.classList.remove('card')
    show(about, element)
    element.querySelector('input')?.focus()
  }
  /** @param {any[]} [more] buttons that are loaded later */
  const showPerson = (more = []) => show(about, facts([[t('email'), own(user.email)], [t('role'), t(`role.${user.role}`)], [t('field.status'), state(user)], [t('field.created_at'), ago(user.created_at)]]),
    h('div.actions', may('users:write') && !user.erased_at && button(t('change'), change), more))
  const named = (saved) => {
    user = saved
    show(/** @type {Element} */ (main.querySelector('h1')), own(user.display_name))
    showActions()
  }
  async function showActions() {
    showPerson()
    if (!may('users:write')) return
    const { forAdmins } = await import('./personForm.js')
    if (!about.querySelector('form')) showPerson(forAdmins(user, named))
  }

  async function showAssets() {
    if (!may('assets:read')) return show(has, hint(t('scope-missing', { scope: 'assets:read' })))
    const { day } = params
    await attempt(has, async () => {
      const { data, meta } = await get(`/users/${id}/assets`, signal, { as_of: endOf(day), limit: 100 })
      if (day !== params.day) return
      if (!day) await attempt(processes, async () => show(processes, await runningProcesses(data, signal)))
      const assets = data.filter(({ status }) => status === 'in_use').slice(0, MOST).map(({ id }) => id).join()
      show(has, data.length === 0 ? hint(t('has-nothing'))
        : [assetList(data), meta.total > data.length && hint(t('elsewhere-count', { count: meta.total - data.length })),
          !day && assets && !closed.has('take-back') && h('div.actions', link(t('nav.take-back'), 'take-back', { assets }, 'button'),
            data.length > 1 && link(t('choose-some'), 'assets', { person: id, status: 'in_use' }, 'button'))])
    }, showAssets)
  }

  async function showOffboarding() {
    const { data } = may('processes:read') ? await get('/processes', signal).catch(() => ({ data: [] })) : { data: [] }
    const processes = data.filter(({ trigger_status }) => trigger_status === 'in_use')
    const process = select(processes.map(({ id, name }) => [id, builtIn(name)]), processes.find(({ slug }) => slug === 'device-return')?.id)
    const off = choice(t('deactivate'), user.is_active)
    const outcome = h('div')
    const once = intent()
    const path = `/users/${id}/offboard`
    const newPlan = latest(signal)
    const first = button(t('show-plan'), () => attempt(outcome, async () => {
      const asked = { ...(process.value ? { process_id: process.value } : {}), deactivate: off.box.checked }
      const planned = newPlan()
      const { data, meta } = await plan(path, asked, planned)
      const stopped = await stoppedBy(data.user, meta)
      planned.throwIfAborted()
      const act = button(t('offboard'), () => doIt(asked), 'primary')
      show(outcome, told(data, asked, t('would-happen'), stopped), h('div.actions', act))
      act.focus()
    }))
    const doIt = (asked) => attempt(outcome, async () => {
      let { data, meta } = await once(path, asked)
      // If the user has very many assets, each request starts the process on only some of them.
      for (let round = 1; data.has_more; round++) {
        const { data: more } = await once(path, asked, round)
        data = { ...more, movements: [...data.movements, ...more.movements], instances: [...data.instances, ...more.instances] }
      }
      user = { ...user, ...data.user }
      show(outcome, told(data, asked, t('done'), await stoppedBy(data.user, meta)))
      showActions()
      showAssets()
    }, () => doIt(asked))
    for (const control of [process, off.box]) control.addEventListener('change', () => {
      newPlan()
      show(outcome)
    })
    show(leaving, processes.length > 0 && field(t('process'), process), off.element, h('div.actions', first), outcome)
  }

  showActions()
  showAssets()
  if (mayOffboard) showOffboarding()
  return {
    title: user.display_name,
    update(next) {
      params = next
      day.value = params.day ?? ''
      showAssets()
    },
  }
}

/** Shows the processes in progress on assets, each with its current step: what somebody still has to sign or to give back. */
async function runningProcesses(assets, signal) {
  if (!may('processes:read')) return null
  const running = async ({ id }) => (await get('/processes/instances', signal, { asset_id: id, status: 'in_progress', omit: 'signatures', limit: 1 })).data
  const all = await Promise.all(assets.slice(0, MAX_NAMED).map(running))
  const one = new Map(all.flat().map((instance) => [runPath(instance), instance]))
  const line = ([path, instance]) =>
    h('li', link(own(builtIn(instance.process_name)), path), h('span.hint', ' ', stepOf(instance), ' · ', ago(instance.started_at)))
  return one.size > 0 && card(t('run.in_progress'), h('ul.plain-list', [...one].map(line)))
}

/** Returns a line for each process that can't go on because the user is inactive. @returns {Promise<any[]>} */
async function stoppedBy({ is_active: isActive }, { picked_in: picked }) {
  const ids = isActive ? [] : picked
  const line = async (id) => {
    const process = link(own((await instanceName(id)) ?? t('a-process')), `run/instances/${id}`)
    return h('li', sentence('cant-go-on', { process }))
  }
  return [await Promise.all(ids.slice(0, MAX_NAMED).map(line)), ids.length > MAX_NAMED && h('li', t('elsewhere-count', { count: ids.length - MAX_NAMED }))]
}

/** Shows the preview or the result of an offboarding. */
function told({ process, movements, instances, in_progress_count: running, not_started: others }, asked, title, stopped) {
  const started = (path, assets) => {
    const text = t('started-on', { assets: t('assets', { count: assets.length }), process: builtIn(process.name) })
    return h('li', path.endsWith('null') ? text : link(text, path), h('ul', assets.map((one) => h('li', assetLink(one)))))
  }
  return planBox(title, [
    asked.deactivate && h('li', t('deactivate')),
    movements.map(({ id, assets }) => started(`run/movements/${id}`, assets)),
    instances.map((one) => started(`run/instances/${one.instance_id}`, [one])),
    running > 0 && h('li', t('already-running', { count: running })),
    stopped,
    others.map((one) => h('li', assetLink(one), colon(), reason(one.code, { status_of_asset: one.status, trigger_status: 'in_use' }))),
    movements.length + instances.length + others.length + running === 0 && h('li', t('has-nothing'))])
}
