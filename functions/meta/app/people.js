// People: what somebody has and had, and their offboarding.
import { Intent, get, may, now, plan, post, query } from './api.js'
import { button, card, facts, h, own, part, show, skeleton } from './dom.js'
import { checkbox, debounced, empty, field, input, problemBox, select } from './form.js'
import { reason } from './asset.js'
import { go, href } from './route.js'
import { ago, sentence, t } from './text.js'
import { assetLink, pill } from './words.js'

export function people(main, params, signal) {
  const search = input('search', params.q, { id: 'search', className: 'search', placeholder: t('person-placeholder'), 'aria-label': t('search') })
  const list = h('div.list', skeleton(8))
  search.addEventListener('input', debounced(() => signal.aborted || go(['people'], { q: search.value.trim() }, true)))
  show(main, h('h1.unseen', { tabIndex: -1 }, t('nav.people')), h('div.bar-line', search), list)
  part('main').classList.add('wide')
  let running = new AbortController()
  async function showList() {
    running.abort()
    running = new AbortController()
    const either = AbortSignal.any([running.signal, signal])
    const page = Number(params.page) || 1
    try {
      const { data, meta } = await get(`/users${query({ q: params.q, page, limit: 50 })}`, either)
      const row = (user) => h('tr',
        h('td.c-name', h('a.row', { href: `#/person/${user.id}` }, own(user.display_name)), own(user.email, 'hint')),
        h('td', t(`role.${user.role}`)), h('td', t(user.is_active ? 'active' : 'inactive')))
      const link = (to, text) => h('a.button', { href: href(['people'], { ...params, page: to }) }, text)
      show(list, data.length === 0 ? empty(t('nothing-found'), t('nothing-found-hint'))
        : h('table.people', h('caption.unseen', t('nav.people')),
          h('thead', h('tr', [t('field.name'), t('role'), t('state')].map((text) => h('th', { scope: 'col' }, text)))), h('tbody', data.map(row))),
      h('p.totals', { role: 'status' }, t('people', { count: meta.total })),
      meta.total_pages > 1 && h('nav.pages', { 'aria-label': t('pages') }, page > 1 && link(page - 1, t('previous')),
        h('span', t('page-of', { page, of: meta.total_pages })), page < meta.total_pages && link(page + 1, t('next'))))
    } catch (error) {
      if (!either.aborted) show(list, problemBox(error, showList))
    }
  }
  showList()
  return { title: t('nav.people'), update: (next) => ((params = next), showList()) }
}

export async function person(main, id, params, signal) {
  show(main, skeleton(10))
  let { data: user } = await get(`/users/${id}`, signal)
  const has = h('div', skeleton(3))
  const day = input('date', params.day, { max: new Date().toISOString().slice(0, 10) })
  day.addEventListener('change', () => go(['person', id], { day: day.value }, true))
  const leaving = h('div')
  const header = h('div.title')
  show(main, header, h('div', { className: 'columns' },
    card(t('assets-of'), h('div.as-of', field(t('as-of'), day)), has),
    h('div.side', card(t('person'), facts([[t('email'), own(user.email)], [t('role'), t(`role.${user.role}`)], [t('state'), t(user.is_active ? 'active' : 'inactive')], [t('field.created_at'), ago(user.created_at)]])),
      may('users:write') && may('processes:write') && card(t('offboard'), leaving))))
  show(header, h('div', h('h1', { tabIndex: -1 }, own(user.display_name))), h('div', { className: 'actions' },
    may('processes:write') && user.is_active && h('a.button', { href: href(['hand-over'], { person: id }) }, t('nav.hand-over'))))

  async function showAssets() {
    try {
      const end = params.day && new Date(Math.min(+new Date(`${params.day}T23:59:59.999`), +now() - 1000)).toISOString()
      const { data, meta } = await get(`/users/${id}/assets${query({ as_of: end, limit: 100 })}`, signal)
      const back = !params.day && may('processes:write') && data.some(({ status }) => status === 'in_use')
      const some = data.filter(({ status }) => status === 'in_use').slice(0, 20).map(({ id }) => id).join()
      show(has, data.length === 0 ? h('p.hint', t(params.day ? 'had-nothing' : 'has-nothing'))
        : [h('ul.plain-list.assets', data.map((asset) => h('li', assetLink(asset), pill(asset.status)))),
          meta.total > data.length && h('p.hint', t('elsewhere-count', { count: meta.total - data.length })),
          back && h('a.button', { href: href(['take-back'], { assets: some }) }, t('nav.take-back'))])
    } catch (error) {
      if (!signal.aborted) show(has, problemBox(error, showAssets))
    }
  }

  async function showOffboarding() {
    const processes = may('processes:read') ? (await get('/processes', signal).catch(() => ({ data: [] }))).data.filter(({ trigger_status }) => trigger_status === 'in_use') : []
    const process = select(processes.map(({ id, name }) => [id, name]), processes.find(({ slug }) => slug === 'device-return')?.id)
    const off = checkbox(t('deactivate'), user.is_active)
    const outcome = h('div')
    const intent = new Intent()
    const body = () => ({ ...(process.value ? { process_id: process.value } : {}), deactivate: off.box.checked })
    const first = button(t('show-plan'), async () => {
      try {
        const asked = body()
        const { data } = await plan(`/users/${id}/offboard`, asked)
        show(outcome, h('div.plan', { role: 'status' }, h('h3', t('would-happen')), told(data, asked)),
          h('div.actions', button(t('offboard-now', { name: user.display_name }), () => act(asked), 'primary')))
      } catch (error) {
        show(outcome, problemBox(error))
      }
    })
    async function act(asked) {
      try {
        let { data } = await post(`/users/${id}/offboard`, asked, intent.key(asked, 0))
      // Of somebody with very many assets, a request starts a part.
      for (let round = 1; data.has_more; round++) {
        const { data: more } = await post(`/users/${id}/offboard`, asked, intent.key(asked, round))
        data = { ...more, movements: [...data.movements, ...more.movements], instances: [...data.instances, ...more.instances] }
      }
        user = { ...user, ...data.user }
        show(outcome, h('div.plan.done', { role: 'status' }, h('h3', t('done')), told(data, asked)))
        showAssets()
      } catch (error) {
        show(outcome, problemBox(error, () => act(asked)))
      }
    }
    for (const control of [process, off.box]) control.addEventListener('change', () => show(outcome))
    show(leaving, processes.length > 0 && field(t('process'), process), off.element, h('div.actions', first), outcome)
  }

  showAssets()
  if (may('users:write') && may('processes:write')) showOffboarding()
  return {
    title: user.display_name,
    update(next) {
      params = next
      day.value = params.day ?? ''
      showAssets()
    },
  }
}

/** What an offboarding does or did. */
function told(plan, asked) {
  const link = (way, id, assets) => {
    const text = t('started-on', { count: assets.length, process: plan.process.name })
    return h('li', id ? h('a', { href: href(['run', way, id]) }, text) : text, h('ul', assets.map((one) => h('li', assetLink({ id: one.asset_id, asset_tag: one.asset_tag, name: one.asset_name })))))
  }
  return h('ul', {},
    asked.deactivate && h('li', t('is-deactivated', { name: plan.user.display_name })),
    plan.movements.map(({ id, assets }) => link('movements', id, assets)),
    plan.instances.map((one) => link('instances', one.instance_id, [one])),
    plan.in_progress_count > 0 && h('li', t('already-running', { count: plan.in_progress_count })),
    plan.not_started.map((one) => h('li', sentence('cant-start-on', { asset: assetLink({ id: one.asset_id, asset_tag: one.asset_tag, name: one.asset_name }) }), ' ', reason(one.code, { status_of_asset: one.status, trigger_status: 'in_use' }))),
    plan.movements.length + plan.instances.length + plan.not_started.length + plan.in_progress_count === 0 && h('li', t('has-nothing')))
}
