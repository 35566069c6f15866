#include "engine/container/job_volumes.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "engine/container/container_plan.h"
#include "engine/engine_errors.h"
#include "workspace/small_archive.h"
#include "workspace/tar_pack.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Volume;

/// A named volume of the engine.
struct NamedVolume {
  std::string name;
  bool is_storage = false;  ///< outlives the job
  bool as_it_is = false;    ///< it existed before, and is neither created nor filled
  fs::path content;         ///< a folder of this machine to fill it from; empty: starts empty
};

namespace {

// The pause before a host that did not answer is asked for a job's volumes again.
constexpr std::chrono::seconds kVolumesPause{5};
/// The limit for the names of the volumes in a mark.
constexpr size_t kMostMark = 1 << 20;

/// The mount point of a volume in the container that is never started.
std::string place_of(size_t volume) {
  return "/volumes/" + std::to_string(volume);
}

bool has(const NamedWithLabels& volumes, const std::string& name) {
  return std::any_of(volumes.begin(), volumes.end(),
                     [&](const auto& volume) { return volume.first == name; });
}

workspace::ArchiveEntry root_of(const launch::Account& account) {
  return {.path = ".",
          .content = {},
          .mode = 0755,
          .is_folder = true,
          .uid = account.uid,
          .gid = account.gid,
          .link = {}};
}

/// Creates the container that fills volumes; tries other names if the first is taken.
void make_filler(DockerClient& client, ContainerConfig config, int tries,
                 std::function<void(Result<std::string>)> then) {
  const std::string name = config.name;
  config.name = numbered_name(name, tries);
  client.create(config, [&client, config, name, tries,
                         then = std::move(then)](Result<std::string> id) mutable {
    const bool is_taken = !id && id.error().code == ErrorCode::kConflict;
    if (!is_taken || tries + 1 == kMostNames) return then(std::move(id));
    config.name = name;
    make_filler(client, std::move(config), tries + 1, std::move(then));
  });
}

}  // namespace

/// The volumes of a job on one host, while they are being created and filled.
struct JobVolumes::Filling {
  GangId gang;
  HeldHost* host = nullptr;
  launch::Account account;
  std::string image;
  std::vector<NamedVolume> volumes;
  std::shared_ptr<Made> made;
  Labels owner;               ///< label of everything that this server owns
  bool was_complete = false;  ///< the volumes were filled before: those that are whole are kept
  std::vector<std::string> unfinished;  ///< volumes whose refill has not ended, by the mark
  std::string container;                ///< id; empty: not created yet

  bool is_whole(const NamedWithLabels& listed, const NamedVolume& volume) const {
    const bool is_unfinished =
        std::find(unfinished.begin(), unfinished.end(), volume.name) != unfinished.end();
    return has(listed, volume.name) && (volume.is_storage || !is_unfinished);
  }
};

void JobVolumes::ensure(const GangId& gang, const launch::TaskPlan& plan, HeldHost& host,
                        std::shared_ptr<Made> made, Then then) {
  const std::string& job_id = gang.job_id;
  const auto filling = std::make_shared<Filling>();
  for (size_t i = 0; i < plan.volumes.size(); ++i) {
    const Volume& volume = plan.volumes[i];
    NamedVolume named{.name = engine_volume(owner_, job_id, plan, i),
                      .is_storage = volume.kind == Volume::Kind::kStorage,
                      .content = {}};
    if (named.name.empty()) continue;
    if (volume.kind == Volume::Kind::kTree && !volume.source.empty()) {
      named.content = jobs_folder_ / job_id / "trees" / std::to_string(i);
    }
    filling->volumes.push_back(std::move(named));
  }
  if (filling->volumes.empty()) return then({});
  filling->gang = gang;
  filling->host = &host;
  filling->account = plan.account;
  filling->image = plan.image;
  filling->made = std::move(made);
  filling->owner = {{kOwnerLabel, owner_}};
  const auto mark = base::read_file(mark_of(job_id, host), kMostMark);
  if (!mark && mark.error().code != ErrorCode::kNotFound) {
    return then(start_error(plan.task, mark.error()));
  }
  filling->was_complete = mark.ok();
  if (mark) filling->unfinished = base::split(*mark, '\n');
  if (!filling->was_complete) return begin(filling, plan.task, std::move(then));
  host.client().volumes(
      as_filters(filling->owner), [this, filling, task = plan.task,
                                   then = std::move(then)](const Result<NamedWithLabels>& listed) {
        if (!listed) return then(start_error(task, listed.error()));
        std::string missing;
        for (const NamedVolume& volume : filling->volumes) {
          if (!filling->is_whole(*listed, volume)) missing += volume.name + "\n";
        }
        if (missing.empty()) return then({});
        auto noted = base::write_file(mark_of(filling->gang.job_id, *filling->host), missing);
        if (!noted) return then(start_error(task, std::move(noted).error()));
        begin(filling, task, then);
      });
}

void JobVolumes::begin(const std::shared_ptr<Filling>& filling, const std::string& task,
                       Then then) {
  one_by_one({[this, filling](Then next) { create(filling, std::move(next)); },
              [this, filling](Then next) { check_owner(filling, std::move(next)); },
              [this, filling](Then next) { fill(filling, std::move(next)); }},
             [mark = mark_of(filling->gang.job_id, *filling->host), task,
              then = std::move(then)](Result<void> filled) {
               if (!filled) return then(start_error(task, std::move(filled).error()));
               filled = base::make_private_folder(mark.parent_path());
               then(filled ? base::write_file(mark, "") : filled);
             });
}

/// Existing volumes of the job that are not complete by the mark are removed first. No task can
/// have written to them: tasks start only after all volumes are complete.
void JobVolumes::create(const std::shared_ptr<Filling>& filling, Then then) {
  filling->host->client().volumes(
      as_filters(filling->owner), [this, filling, then](Result<NamedWithLabels> listed) {
        if (!listed) return then(std::move(listed).error());
        std::vector<Step> steps;
        DockerClient& client = filling->host->client();
        for (NamedVolume& volume : filling->volumes) {
          const bool is_known = has(*listed, volume.name);
          volume.as_it_is = volume.is_storage
                                ? is_known
                                : filling->was_complete && filling->is_whole(*listed, volume);
          if (volume.as_it_is) continue;
          // An earlier attempt may not have been able to remove its volume yet.
          steps.emplace_back([this, filling, volume](const Then& next) {
            removals_.cancel(*filling->host, Removals::Kind::kVolume, volume.name,
                             [next] { next({}); });
          });
          if (is_known) {
            steps.emplace_back([&client, volume](Then next) {
              client.remove_volume(volume.name, std::move(next));
            });
          }
          const Labels labels =
              volume.is_storage ? filling->owner : labels_of_job(owner_, filling->gang.job_id);
          steps.emplace_back([&client, filling, volume, labels](Then next) {
            // If the start fails, a refilled volume stays: the mark of the others is still needed.
            const bool is_made = !volume.is_storage && !filling->was_complete;
            if (is_made) filling->made->emplace_back(filling->host, volume.name);
            client.create_volume(volume.name, labels, std::move(next));
          });
        }
        one_by_one(std::move(steps), then);
      });
}

/// If a volume of that name exists, an engine returns it instead of an error, even if another
/// program owns it.
void JobVolumes::check_owner(const std::shared_ptr<Filling>& filling, Then then) {
  filling->host->client().volumes(as_filters(filling->owner), [filling, then](
                                                                  Result<NamedWithLabels> listed) {
    if (!listed) return then(std::move(listed).error());
    for (const NamedVolume& volume : filling->volumes) {
      if (has(*listed, volume.name)) continue;
      std::erase_if(*filling->made, [&](const auto& made) { return made.second == volume.name; });
      return then(Error{.code = ErrorCode::kConflict,
                        .what = "on " + filling->host->host.name() + " there is a volume '" +
                                volume.name +
                                "' that does not belong to this server; it is not used",
                        .advice = "rename or remove that volume"});
    }
    then({});
  });
}

void JobVolumes::fill(const std::shared_ptr<Filling>& filling, Then then) {
  ContainerConfig config;
  config.name = volume_name(filling->gang.job_id, "volumes");
  config.image = filling->image;
  config.entrypoint = {std::string(kProgramsFolder) + "/muster-shim"};
  config.labels = labels_of_gang(owner_, filling->gang);
  std::vector<Step> steps;
  DockerClient& client = filling->host->client();
  for (size_t i = 0; i < filling->volumes.size(); ++i) {
    const NamedVolume& volume = filling->volumes[i];
    if (volume.as_it_is) continue;
    config.mounts.push_back({.source = volume.name, .target = place_of(i)});
    steps.emplace_back([&client, filling, i](Then next) {
      client.put_archive(filling->container, place_of(i),
                         workspace::make_archive({root_of(filling->account)}), std::move(next));
    });
    if (volume.content.empty()) continue;
    steps.emplace_back([&client, filling, i, content = volume.content](Then next) {
      auto packer = workspace::TarPacker::open(content.string() + "/.", [](const auto&) {});
      if (!packer) return next(std::move(packer).error());
      packer->set_owner(filling->account.uid, filling->account.gid);
      const auto shared = std::make_shared<workspace::TarPacker>(*std::move(packer));
      const auto piece = [shared]() -> Result<std::string> {
        MUSTER_TRY(const std::string_view bytes, shared->next());
        return std::string(bytes);
      };
      client.put_archive(filling->container, place_of(i), piece, std::move(next));
    });
  }
  if (steps.empty()) return then({});
  const auto take_away = [this, filling, then](const Result<void>& filled) {
    if (filling->container.empty()) return then(filled);
    removals_.add(*filling->host, Removals::Kind::kContainer, filling->container,
                  [then, filled] { then(filled); });
  };
  make_filler(filling->host->client(), config, 0,
              [filling, steps = std::move(steps), take_away](Result<std::string> id) {
                if (!id) return take_away(std::move(id).error());
                filling->container = *id;
                one_by_one(steps, take_away);
              });
}

fs::path JobVolumes::mark_of(const std::string& job_id, const HeldHost& host) const {
  return jobs_folder_ / job_id / "volumes" / host.host.name();
}

void JobVolumes::forget(const std::string& job_id, const HeldHost& host) const {
  std::error_code ignored;
  fs::remove(mark_of(job_id, host), ignored);
}

void JobVolumes::remove(const std::string& job_id, const Hosts& hosts) {
  std::error_code ignored;
  for (const auto& [name, host] : hosts.all()) {
    if (fs::exists(mark_of(job_id, *host), ignored)) remove_from(*host, job_id);
  }
}

/// The host lists the volumes, because attempts of a job may have had different ones.
void JobVolumes::remove_from(HeldHost& host, const std::string& job_id) {
  const auto filters = as_filters(labels_of_job(owner_, job_id));
  host.client().volumes(filters, [this, &host, job_id](const Result<NamedWithLabels>& listed) {
    if (!listed) {
      // The host does not answer. If this server ends first, the next one finds them by label.
      later_[{&host, job_id}] =
          loop_.after(kVolumesPause, [this, &host, job_id] { remove_from(host, job_id); });
      return;
    }
    later_.erase({&host, job_id});
    for (const auto& [name, labels] : *listed) {
      removals_.add(host, Removals::Kind::kVolume, name);
    }
  });
}

}  // namespace muster::engine
