// L3 roof: all of it but <asio_wheel/fmt.hpp>. Timeouts for Asio servers on a timing wheel.
#pragma once

#include <asio_wheel/detail/ground/requirements.hpp>

#include <asio_wheel/cancel_after.hpp>
#include <asio_wheel/heartbeat.hpp>
#include <asio_wheel/keyed_scheduler.hpp>
#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/use_wheel.hpp>
#include <asio_wheel/virtual_time.hpp>
#include <asio_wheel/wheel_errc.hpp>
#include <asio_wheel/wheel_interval.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>
#include <asio_wheel/wheel_timer.hpp>
#include <asio_wheel/wheel_timer_service.hpp>
#include <asio_wheel/wheel_watchdog.hpp>
