#include <cstdio>

#include "idx.h"
#include "muster/parameter_server/client.h"
#include "muster/parameter_server/cluster.h"
#include "muster/parameter_server/server.h"
#include "run.h"
#include "server_trainer.h"
#include "shard.h"

namespace muster::digits {
namespace {

using collective::Result;
using parameter_server::Client;
using parameter_server::Cluster;
using parameter_server::Ending;
using parameter_server::Role;
using parameter_server::Server;
using parameter_server::ServerStatus;

std::string name_of(const Cluster& cluster) {
  const char* const role = cluster.role == Role::kServer ? "parameter server " : "worker ";
  return role + std::to_string(cluster.index);
}

void print_served(const Cluster& cluster, const ServerStatus& status, const Ending& ending) {
  std::printf("%s: %s, %s; %s left, %llu lost\n", name_of(cluster).c_str(),
              count_of(status.pushes, "step").c_str(), count_of(status.pulls, "pull").c_str(),
              count_of(ending.left, "worker").c_str(),
              static_cast<unsigned long long>(ending.lost));
  std::fflush(stdout);
}

int serve(const Cluster& cluster, const Options& options) {
  Result<Server> server =
      Server::start({.address = cluster.address,
                     .key = cluster.key,
                     .staleness = options.servers.staleness,
                     .workers = options.servers.start_with.value_or(cluster.workers),
                     .silence = options.servers.silence});
  if (!server) return complain(name_of(cluster) + ": " + server.error().to_string());
  if (options.output == Output::kText) {
    std::printf("%s of %zu serves on %s\n", name_of(cluster).c_str(), cluster.servers.size(),
                server->address().c_str());
    std::fflush(stdout);
  }

  server->wait_as_task([&](const Ending& ending) {
    if (options.output == Output::kText) print_served(cluster, server->status(), ending);
  });
  return 0;
}

void print_worker(const Cluster& cluster, const Dataset& data, const Options& options) {
  const Shard shard(data.train.size(), cluster.index, cluster.workers, 1);
  std::printf("%s of %d%s: %zu training images\n", name_of(cluster).c_str(), cluster.workers,
              cluster.is_chief ? ", the chief" : "", shard.size());
  if (cluster.is_chief) {
    const auto epochs = static_cast<std::uint64_t>(options.settings.epochs);
    std::printf("%s, batches of %zu on each worker, %s, %s\n",
                count_of(cluster.servers.size(), "parameter server").c_str(),
                options.settings.batch, count_of(epochs, "epoch").c_str(),
                to_string(options.servers.optimizer).c_str());
  }
  std::fflush(stdout);
}

int train_as_worker(Client& client, const Cluster& cluster, const Options& options) {
  const auto data = load_dataset(options.data);
  if (!data) return complain(name_of(cluster) + ": " + data.error());
  if (options.output == Output::kText) print_worker(cluster, *data, options);
  if (cluster.is_chief) print_data(*data, options);

  Progress progress(options.settings.epochs, options.output);
  const Observer observer{
      .on_step = [&](int epoch, std::size_t step,
                     std::size_t steps) { progress.show_step(epoch, step, steps); },
      .on_epoch =
          [&](const EpochReport& epoch) {
            progress.show_epoch(epoch);
            report_epoch(epoch, options);
          }};
  const auto done = train_with_servers(client, {cluster.index, cluster.workers}, *data,
                                       options.settings, options.servers.optimizer, observer);
  if (!done) return complain(name_of(cluster) + ": " + done.error().to_string());
  if (done->outcome) return finish(*done->outcome, "on the chief", progress, options);
  if (options.output == Output::kText) {
    std::printf("%s: learned from %llu images\n", name_of(cluster).c_str(),
                static_cast<unsigned long long>(done->images));
  }
  return 0;
}

int work(const Cluster& cluster, const Options& options) {
  Result<Client> client = Client::connect({.servers = cluster.servers,
                                           .worker = cluster.index,
                                           .key = cluster.key,
                                           .silence = options.servers.silence});
  if (!client) return complain(name_of(cluster) + ": " + client.error().to_string());
  return train_as_worker(*client, cluster, options);
}

}  // namespace

int run_with_servers(const Options& options) {
  const Result<Cluster> cluster = parameter_server::cluster_from_environment();
  if (!cluster) return complain(cluster.error().to_string());
  switch (cluster->role) {
    case Role::kServer:
      return serve(*cluster, options);
    case Role::kWorker:
      return work(*cluster, options);
  }
  return 1;
}

}  // namespace muster::digits
