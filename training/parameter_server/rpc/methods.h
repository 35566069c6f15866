// The service's methods, once for both ends. Streams of values go as raw buffers instead of
// protobuf messages (see chunk.h), for which gRPC's plugin generates nothing: what it would
// generate stands in service.cc and connection.cc.
#pragma once

namespace muster::parameter_server {

inline constexpr const char* kJoin = "/muster.parameter_server.v1.ParameterServer/Join";
inline constexpr const char* kDeclare = "/muster.parameter_server.v1.ParameterServer/Declare";
inline constexpr const char* kPull = "/muster.parameter_server.v1.ParameterServer/Pull";
inline constexpr const char* kPush = "/muster.parameter_server.v1.ParameterServer/Push";
inline constexpr const char* kStatus = "/muster.parameter_server.v1.ParameterServer/Status";

}  // namespace muster::parameter_server
