// L3 timers: timeouts for Asio servers on a timing wheel. All of it but <asio_wheel/fmt.hpp>,
// <asio_wheel/timed_stream.hpp> and <asio_wheel/beast.hpp>.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/abandon_after.hpp>
#include <asio_wheel/cancel_after.hpp>
#include <asio_wheel/drop_in.hpp>
#include <asio_wheel/heartbeat.hpp>
#include <asio_wheel/idle_window.hpp>
#include <asio_wheel/keyed_scheduler.hpp>
#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/timeout_policy.hpp>
#include <asio_wheel/use_wheel.hpp>
#include <asio_wheel/virtual_time.hpp>
#include <asio_wheel/wheel_errc.hpp>
#include <asio_wheel/wheel_interval.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>
#include <asio_wheel/wheel_timer.hpp>
#include <asio_wheel/wheel_timer_service.hpp>
#include <asio_wheel/wheel_watchdog.hpp>
