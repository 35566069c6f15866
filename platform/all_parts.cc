#include <functional>
#include <memory>
#include <utility>

#include "base/random.h"
#include "base/subprocess.h"
#include "dialects/gradient/gradient.h"
#include "dialects/kubernetes/kubernetes.h"
#include "dialects/runai/runai.h"
#include "engine/kubernetes/server_pod.h"
#include "make_engine.h"
#include "make_other_engines.h"
#include "parts.h"

namespace muster {

using base::Result;

namespace {

/// In a cluster with several servers, the pod of the one that leads has a label.
Result<std::function<void(bool)>> make_role_sign(base::EventLoop& loop) {
  MUSTER_TRY(auto made, engine::kubernetes::server_pod(loop, base::current_environment()));
  std::shared_ptr<engine::kubernetes::ServerPod> pod = std::move(made);
  if (!pod) return std::function<void(bool)>();
  return std::function<void(bool)>([pod](bool leads) { pod->set_leads(leads); });
}

Result<cli::ForeignJobs> read_foreign(const std::vector<config::YamlValue>& documents,
                                      const std::string& source,
                                      const cli::ForeignOptions& options) {
  namespace kubernetes = dialects::kubernetes;
  base::SystemRandom random;
  MUSTER_TRY(kubernetes::Translation translation,
             kubernetes::translate(documents, source,
                                   {.defaults = options.defaults,
                                    .name = options.name,
                                    .settings = options.settings,
                                    .flags = options.flags,
                                    .random = random,
                                    .on_kubernetes = options.on_kubernetes,
                                    .is_root = options.is_root}));
  cli::ForeignJobs jobs{.jobs = {}, .warnings = std::move(translation.warnings)};
  for (kubernetes::TranslatedJob& job : translation.jobs) {
    jobs.jobs.push_back({.spec = std::move(job.spec),
                         .files = std::move(job.files),
                         .schedule = std::move(job.schedule)});
  }
  return jobs;
}

}  // namespace

const Parts& parts() {
  static const Parts parts{
      .engines = {{"process", make_process_engine, examine_process_engine},
                  {"container", make_container_engine, examine_container_engine},
                  {"slurm", make_slurm_engine, examine_slurm_engine},
                  {"kubernetes", make_kubernetes_engine, examine_kubernetes_engine}},
      .dialects = {{"gradient", dialects::gradient::run}, {"runai", dialects::runai::run}},
      .read_foreign = read_foreign,
      .make_role_sign = make_role_sign};
  return parts;
}

}  // namespace muster
