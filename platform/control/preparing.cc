// The images of a gang, before it is planned: they are brought to the nodes that its tasks were
// placed on, and looked into, for what a task runs and how it is reached depends on its image.
//
// Nothing of the gang runs meanwhile. Whoever stops or evicts it drops what is under way; a server
// that is started anew finds no task of it, and starts it again from here.
#include <algorithm>

#include "base/units.h"
#include "control/controller.h"
#include "control/run.h"
#include "launch/plan_task.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::ImageWish;
using job::Job;
using job::Task;

namespace {

// Of all that an engine says while it fetches an image.
constexpr std::chrono::seconds kBetweenWords{1};

/// Who the tasks of a role run as, and how its image is had: a role that has an image of its own
/// says so itself.
struct ImageOf {
  const std::string& image;
  const std::string& user;
  const job::RegistryLogin& registry;
};

ImageOf image_of(const job::JobSpec& spec, job::Role role) {
  const job::RoleSpec* const own = launch::role_spec(spec, role);
  if (own == nullptr || own->image.empty()) return {spec.image, spec.user, spec.registry};
  return {own->image, own->user, own->registry};
}

Result<std::string> password_of(const job::RegistryLogin& login, const std::string& project,
                                const Accounts* accounts) {
  if (login.secret.empty()) return std::string();
  if (accounts == nullptr) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "this server keeps no secrets, and one is to log in to a registry"};
  }
  return accounts->open_secret(project, login.secret);
}

/// One for each of these tasks of the job.
Result<std::vector<ImageWish>> wishes_of(const Job& job, const std::vector<const Task*>& tasks,
                                         const Accounts* accounts) {
  std::vector<ImageWish> wishes;
  for (const Task* const task : tasks) {
    const ImageOf of = image_of(job.spec, task->role);
    MUSTER_TRY(std::string password, password_of(of.registry, job.spec.project, accounts));
    wishes.push_back({.task = task->name,
                      .node = task->node,
                      .image = of.image,
                      .user = of.user,
                      .pull = job.spec.container.pull,
                      .registry = of.registry.server,
                      .username = of.registry.username,
                      .password = std::move(password)});
  }
  return wishes;
}

std::vector<const Task*> placed_tasks(const Job& job) {
  std::vector<const Task*> tasks;
  for (const Task& task : job.tasks) {
    if (!task.node.empty()) tasks.push_back(&task);
  }
  return tasks;
}

std::vector<std::string> tasks_of(const std::vector<ImageWish>& wishes) {
  std::vector<std::string> tasks;
  for (const ImageWish& wish : wishes) tasks.push_back(wish.task);
  return tasks;
}

/// As many facts as wishes.
Result<void> keep_facts(Result<std::vector<launch::ImageFacts>> facts,
                        const std::vector<std::string>& tasks,
                        std::map<std::string, launch::ImageFacts>& images) {
  if (!facts) return facts.error();
  if (facts->size() != tasks.size()) {
    return Error{.code = ErrorCode::kInternal, .what = "not every image was looked into"};
  }
  for (size_t i = 0; i < tasks.size(); ++i) images[tasks[i]] = std::move((*facts)[i]);
  return {};
}

/// Each once.
std::vector<std::string> images_of(const std::vector<ImageWish>& wishes) {
  std::set<std::string> images;
  for (const ImageWish& wish : wishes) images.insert(wish.image);
  return {images.begin(), images.end()};
}

std::chrono::milliseconds time_between(base::Time began, base::Time ended) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(ended - began);
  return std::max(took, std::chrono::milliseconds(0));
}

}  // namespace

void Controller::fetch_images(Entry& entry) {
  Job& job = entry.job;
  auto wishes = wishes_of(job, placed_tasks(job), parts_.accounts);
  if (!wishes) {
    fail(entry, {.cause = job::Remark{wishes.error().what}, .advice = wishes.error().advice});
    return finish_if_over(entry);
  }
  Run::Fetch& fetch = entry.run->fetch.emplace();
  fetch.began = parts_.clock.now();
  fetch.tasks = tasks_of(*wishes);
  const job::LooksForImages looks{images_of(*wishes)};
  job.reason = looks;
  note(job, looks);
  change(entry);
  const auto alive = std::weak_ptr<bool>(alive_);
  fetch.interest = parts_.engine.prepare(
      engine_gang(job), *std::move(wishes),
      [this, alive, id = job.id, attempt = job.attempt](const job::FetchesImage& now) {
        Entry* const of = alive.expired() ? nullptr : run_of(id, attempt);
        if (of == nullptr || !of->run->fetch) return;
        of->run->fetch->now = now;
        show_fetching(*of);
      },
      [this, alive, id = job.id,
       attempt = job.attempt](Result<std::vector<launch::ImageFacts>> facts) {
        if (!alive.expired()) images_fetched(id, attempt, std::move(facts));
      });
}

/// Those who watch are told now and then. It is not stored: a new server begins anew.
void Controller::show_fetching(Entry& entry) {
  Job& job = entry.job;
  Run::Fetch& fetch = *entry.run->fetch;
  if (fetch.pause || !fetch.now || job.reason == job::Reason(*fetch.now)) return;
  job.reason = *fetch.now;
  tell(job);
  fetch.pause = parts_.loop.after(kBetweenWords, [this, id = job.id, attempt = job.attempt] {
    Entry* const of = run_of(id, attempt);
    if (of == nullptr || !of->run->fetch) return;
    of->run->fetch->pause.reset();
    show_fetching(*of);
  });
}

void Controller::images_fetched(const std::string& id, int attempt,
                                Result<std::vector<launch::ImageFacts>> facts) {
  Entry* const entry = run_of(id, attempt);
  if (entry == nullptr || !entry->run->fetch) return;
  Job& job = entry->job;
  Run& run = *entry->run;
  const Run::Fetch fetch = *std::exchange(run.fetch, std::nullopt);
  if (job.stop_requested || job.eviction) return finish_if_over(*entry);
  if (const auto kept = keep_facts(std::move(facts), fetch.tasks, run.images); !kept) {
    ++metrics_.engine_errors;
    if (!try_again_later(*entry, kept.error())) {
      fail(*entry, {.cause = job::Remark{kept.error().what}, .advice = kept.error().advice});
    }
    return finish_if_over(*entry);
  }
  note(job, job::ImagesThere{time_between(fetch.began, parts_.clock.now())});
  job.reason = starting_reason(job);
  change(*entry);
  begin(*entry);
}

/// The image of a worker that joins; and of those who are there, what an earlier server knew.
void Controller::fetch_newcomers_image(Entry& entry, const Task& newcomer) {
  Job& job = entry.job;
  Run& run = *entry.run;
  std::vector<const Task*> tasks{&newcomer};
  for (const Task* const task : placed_tasks(job)) {
    const bool is_known = run.images.contains(task->name) || run.newcomers.contains(task->name);
    if (!task->left && !is_known) tasks.push_back(task);
  }
  auto wishes = wishes_of(job, tasks, parts_.accounts);
  const std::string name = newcomer.name;
  if (!wishes) return turn_away(entry, *find_task(job, name), wishes.error().what);
  run.newcomers.at(name).fetch = parts_.engine.prepare(
      engine_gang(job), *wishes, [](const job::FetchesImage&) {},
      [this, alive = std::weak_ptr<bool>(alive_), id = job.id, attempt = job.attempt, name,
       names = tasks_of(*wishes)](Result<std::vector<launch::ImageFacts>> facts) {
        Entry* const of = alive.expired() ? nullptr : run_of(id, attempt);
        if (of != nullptr) newcomers_image_fetched(*of, name, names, std::move(facts));
      });
}

void Controller::newcomers_image_fetched(Entry& entry, const std::string& name,
                                         const std::vector<std::string>& tasks,
                                         Result<std::vector<launch::ImageFacts>> facts) {
  const auto newcomer = entry.run->newcomers.find(name);
  if (newcomer == entry.run->newcomers.end()) return;
  const auto whose_turn_this_is = std::move(newcomer->second.fetch);
  const auto kept = keep_facts(std::move(facts), tasks, entry.run->images);
  if (kept) return line_up_newcomer(entry, name);
  ++metrics_.engine_errors;
  turn_away(entry, *find_task(entry.job, name), kept.error().what);
}

/// Nothing of it has started, so nothing is lost.
void Controller::leave_before_start(Entry& entry, const std::string& node) {
  const auto& tasks = entry.job.tasks;
  const bool is_meant =
      std::any_of(tasks.begin(), tasks.end(), [&](const Task& task) { return task.node == node; });
  if (!is_meant) return;
  entry.run->requeue =
      job::AttemptAbandoned{.why = job::AttemptAbandoned::Why::kNodeGone, .node = node};
  end_gang(entry, engine::StopMode::kNow);
}

void Controller::give_up_fetching(Entry& entry) {
  Job& job = entry.job;
  if (!std::exchange(entry.run->fetch, std::nullopt)) return;
  note(job, job::Notice{job::Notice::What::kImagesGivenUp});
  soon([this, id = job.id, attempt = job.attempt] {
    if (Entry* const late = run_of(id, attempt)) finish_if_over(*late);
  });
}

}  // namespace muster::control
