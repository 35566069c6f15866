// The volumes of a job on a host: made once, and filled through a container that is never started,
// for only into a container can anything be put.
//
// That they are whole is noted on this machine when they are: JOB/volumes/HOST. Without that, what
// an earlier server may have left half filled is made anew.
#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_engine_impl.h"
#include "engine/container/labels.h"
#include "workspace/tar_pack.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using job::Volume;

/// A volume of the engine that tasks find somewhere.
struct NamedVolume {
  std::string name;
  bool is_storage = false;  ///< outlives the job
  bool as_it_is = false;    ///< it was there before, and stays what it was
  fs::path content;         ///< a folder of this machine; empty: it begins empty
};

namespace {

// Until a host that did not answer is asked for a job's volumes again.
constexpr std::chrono::seconds kVolumesPause{5};

/// Where the container that is never started has them.
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

/// Under another name where somebody else has that one.
void make_filler(DockerClient& client, ContainerConfig config, int tries,
                 std::function<void(Result<std::string>)> then) {
  const std::string name = config.name;
  if (tries > 0) config.name += "-" + std::to_string(tries + 1);
  client.create(config, [&client, config, name, tries,
                         then = std::move(then)](Result<std::string> id) mutable {
    const bool is_taken = !id && id.error().code == ErrorCode::kConflict;
    if (!is_taken || tries + 1 == kMostNames) return then(std::move(id));
    config.name = name;
    make_filler(client, std::move(config), tries + 1, std::move(then));
  });
}

}  // namespace

/// The volumes of a job on one host.
struct ContainerEngine::Impl::Filling {
  std::shared_ptr<GangStart> start;
  HeldHost* host = nullptr;
  launch::Account account;
  std::string image;
  std::vector<NamedVolume> volumes;
  Labels owner;  ///< of all that is this server's
  std::string container;
};

Step ContainerEngine::Impl::volumes_step(const std::shared_ptr<GangStart>& start, HeldHost& host) {
  return [this, start, &host](Then then) {
    if (start->error) return then(*start->error);
    const auto plan = std::find_if(start->plans.begin(), start->plans.end(),
                                   [&](const auto& each) { return each.node == host.host.name(); });
    const auto filling = std::make_shared<Filling>();
    const std::string& job = start->gang.job_id;
    for (size_t i = 0; i < plan->volumes.size(); ++i) {
      const Volume& volume = plan->volumes[i];
      NamedVolume named{.name = engine_volume(options.owner, job, *plan, i),
                        .is_storage = volume.kind == Volume::Kind::kStorage,
                        .content = {}};
      if (named.name.empty()) continue;
      if (volume.kind == Volume::Kind::kTree && !volume.source.empty()) {
        named.content = job_folder(job) / "trees" / std::to_string(i);
      }
      filling->volumes.push_back(std::move(named));
    }
    const fs::path whole = job_folder(job) / "volumes" / host.host.name();
    std::error_code ignored;
    if (filling->volumes.empty() || fs::exists(whole, ignored)) return then({});
    filling->start = start;
    filling->host = &host;
    filling->account = plan->account;
    filling->image = plan->image;
    filling->owner = {{kOwnerLabel, options.owner}};
    one_by_one({[this, filling](Then next) { make_volumes(filling, std::move(next)); },
                [this, filling](Then next) { check_owner(filling, std::move(next)); },
                [this, filling](Then next) { fill(filling, std::move(next)); }},
               [whole, task = plan->task, then = std::move(then)](Result<void> made) {
                 if (!made) return then(start_error(task, std::move(made).error()));
                 made = base::make_private_folder(whole.parent_path());
                 then(made ? base::write_file(whole, "") : made);
               });
  };
}

/// Those of the job are made anew, but for none that a task may have written to: then it would have
/// been noted that they are whole.
void ContainerEngine::Impl::make_volumes(const std::shared_ptr<Filling>& filling, Then then) {
  filling->host->client().volumes(
      as_filters(filling->owner), [this, filling, then](Result<NamedWithLabels> listed) {
        if (!listed) return then(std::move(listed).error());
        std::vector<Step> steps;
        DockerClient& client = filling->host->client();
        for (NamedVolume& volume : filling->volumes) {
          const bool is_known = has(*listed, volume.name);
          volume.as_it_is = is_known && volume.is_storage;
          if (volume.as_it_is) continue;
          if (is_known) {
            steps.emplace_back([&client, volume](Then next) {
              client.remove_volume(volume.name, std::move(next));
            });
          }
          const Labels labels = volume.is_storage
                                    ? filling->owner
                                    : labels_of_job(options.owner, filling->start->gang.job_id);
          steps.emplace_back([&client, filling, volume, labels](Then next) {
            if (!volume.is_storage)
              filling->start->volumes.emplace_back(filling->host, volume.name);
            client.create_volume(volume.name, labels, std::move(next));
          });
        }
        one_by_one(std::move(steps), then);
      });
}

/// An engine gives whoever makes a volume the one of that name that is there already, whosever it
/// is.
void ContainerEngine::Impl::check_owner(const std::shared_ptr<Filling>& filling, Then then) {
  filling->host->client().volumes(
      as_filters(filling->owner), [filling, then](Result<NamedWithLabels> listed) {
        if (!listed) return then(std::move(listed).error());
        for (const NamedVolume& volume : filling->volumes) {
          if (has(*listed, volume.name)) continue;
          std::erase_if(filling->start->volumes,
                        [&](const auto& made) { return made.second == volume.name; });
          return then(Error{.code = ErrorCode::kConflict,
                            .what = "on " + filling->host->host.name() + " there is a volume '" +
                                    volume.name + "' that is not this server's; it is left alone",
                            .advice = "rename or remove it there"});
        }
        then({});
      });
}

void ContainerEngine::Impl::fill(const std::shared_ptr<Filling>& filling, Then then) {
  ContainerConfig config;
  config.name = volume_name(filling->start->gang.job_id, "volumes");
  config.image = filling->image;
  config.entrypoint = {std::string(kProgramsFolder) + "/muster-shim"};
  config.labels = labels_of_job(options.owner, filling->start->gang.job_id);
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
    removals.add(*filling->host, Removals::Kind::kContainer, filling->container,
                 [then, filled] { then(filled); });
  };
  make_filler(filling->host->client(), config, 0,
              [filling, steps = std::move(steps), take_away](Result<std::string> id) {
                if (!id) return take_away(std::move(id).error());
                filling->container = *id;
                one_by_one(steps, take_away);
              });
}

void ContainerEngine::Impl::forget_volumes(const std::string& job_id, const HeldHost& host) const {
  std::error_code ignored;
  fs::remove(job_folder(job_id) / "volumes" / host.host.name(), ignored);
}

/// Which they are the host is asked: an attempt may have had others than the next.
void ContainerEngine::Impl::remove_volumes(HeldHost& host, const std::string& job_id) {
  const auto filters = as_filters(labels_of_job(options.owner, job_id));
  host.client().volumes(filters, [this, &host, job_id](const Result<NamedWithLabels>& listed) {
    if (!listed) {
      // The host is away. Should the server go first, the next one finds them by their labels.
      host.later[job_id] =
          loop.after(kVolumesPause, [this, &host, job_id] { remove_volumes(host, job_id); });
      return;
    }
    host.later.erase(job_id);
    for (const auto& [name, labels] : *listed) {
      removals.add(host, Removals::Kind::kVolume, name);
    }
  });
}

}  // namespace muster::engine
