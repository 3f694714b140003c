"""Geodesy, oceans, air and rock: pymap3d, seawater, psychrolib, thermofeel, pyet, bruges, choclo, pykrige, gstools."""

from __future__ import annotations

import datetime

import numpy as np

from benchmarks.wild.calls import With, calls, same

RANDOM = np.random.default_rng(8)
WHEN = datetime.datetime(2020, 3, 4, 5, 6, 7)
S, T, P = np.array([34.0, 35.0, 36.0]), np.array([10.0, 15.0, 4.0]), np.array([100.0, 500.0, 1000.0])
UPPER, LOWER = (2350.0, 1150.0, 2400.0), (2900.0, 1500.0, 2550.0)
PLACES = (1.0, 2.0, 3.0, 4.5, 6.5, 8.5)
PRISM = (1.0, 2.0, 30.0, -10.0, 10.5, -9.0, 12.0, -20.0, -3.0, 2670.0)

CALLS = [
    *same("pymap3d.aer", "aer2ecef aer2geodetic", 33.0, 70.0, 1e3, 42.0, -82.0, 200.0),
    *calls(
        "pymap3d.aer",
        ecef2aer=(660930.2, -4701424.0, 4246579.6, 42.0, -82.0, 200.0),
        geodetic2aer=(42.002, -81.99, 1139.7, 42.0, -82.0, 200.0),
        aer2eci=(33.0, 70.0, 1e3, 42.0, -82.0, 200.0, WHEN),
    ),
    *calls(
        "pymap3d.ecef",
        ecef2enu=(660930.2, -4701424.0, 4246579.6, 42.0, -82.0, 200.0),
        ecef2enuv=(10.0, 20.0, 30.0, 42.0, -82.0),
        ecef2geodetic=(660930.2, -4701424.0, 4246579.6),
        enu2ecef=(186.3, 286.8, 939.7, 42.0, -82.0, 200.0),
        enu2uvw=(186.3, 286.8, 939.7, 42.0, -82.0),
        geodetic2ecef=(42.0, -82.0, 200.0),
        uvw2enu=(186.3, 286.8, 939.7, 42.0, -82.0),
    ),
    *calls(
        "pymap3d.enu",
        aer2enu=(33.0, 70.0, 1000.0),
        enu2aer=(186.3, 286.8, 939.7),
        enu2geodetic=(186.3, 286.8, 939.7, 42.0, -82.0, 200.0),
        geodetic2enu=(42.002, -81.99, 1139.7, 42.0, -82.0, 200.0),
    ),
    *calls(
        "pymap3d.ned",
        aer2ned=(33.0, 70.0, 1000.0),
        ecef2ned=(660930.2, -4701424.0, 4246579.6, 42.0, -82.0, 200.0),
        geodetic2ned=(42.002, -81.99, 1139.7, 42.0, -82.0, 200.0),
        ned2aer=(286.8, 186.3, -939.7),
        ned2ecef=(286.8, 186.3, -939.7, 42.0, -82.0, 200.0),
        ned2geodetic=(286.8, 186.3, -939.7, 42.0, -82.0, 200.0),
    ),
    *calls("pymap3d.haversine", anglesep_meeus=(35.0, 23.0, 84.0, 20.0), haversine=0.3),
    *same(
        "pymap3d.latitude",
        "authalic2geodetic conformal2geodetic geodetic2authalic geodetic2conformal geodetic2isometric"
        " geodetic2parametric geodetic2rectifying isometric2geodetic parametric2geodetic"
        " rectifying2geodetic",
        45.0,
    ),
    *same("pymap3d.latitude", "geocentric2geodetic geodetic2geocentric", 45.0, 1000.0),
    *calls(
        "pymap3d.lox",
        departure=(10.0, 40.0, 45.0),
        loxodrome_direct=(40.0, -80.0, 500.0, 30.0),
        loxodrome_inverse=(40.0, -80.0, 65.0, -148.0),
        meridian_arc=(40.0, 42.0),
        meridian_dist=40.0,
    ),
    *calls("pymap3d.los", lookAtSpheroid=(42.0, -82.0, 2000.0, 20.0, 30.0)),
    *same("pymap3d.rcurve", "geocentric_radius meridian parallel transverse", 45.0),
    *calls("pymap3d.rsphere", curve=45.0, euler=(42.0, -82.0, 44.0, -100.0)),
    *calls("pymap3d.spherical", geodetic2spherical=(42.0, -82.0, 200.0), spherical2geodetic=(42.0, -82.0, 6.37e6)),
    *calls(
        "pymap3d.utils", cart2pol=(3.0, 2.0), cart2sph=(3.0, 2.0, 1.0), pol2cart=(0.4, 2.0), sph2cart=(0.4, 0.3, 2.0)
    ),
    *calls("pymap3d.vincenty", vdist=(10.0, 20.0, 12.0, 25.0), vreckon=(10.0, 20.0, 3000.0, 38.0)),
    *calls(
        "pymap3d.vallado", azel2radec=(180.1, 80.0, 65.0, -148.0, WHEN), radec2azel=(166.5, 55.0, 65.0, -148.0, WHEN)
    ),
    *same("seawater.eos80", "adtg alpha beta cp dens pden ptmp svel temp", S, T, P),
    *calls(
        "seawater.eos80",
        dens0=(S, T),
        dpth=(P, 45.0),
        fp=(S, P),
        g=(45.0, 100.0),
        pres=(P, 45.0),
        salt=(np.array([0.9, 1.0]), 15.0, 0.0),
    ),
    *calls(
        "seawater.geostrophic",
        svan=(S, T, P),
        gpan=(S[:, None], T[:, None], P[:, None]),
        bfrq=(S[:, None], T[:, None], P[:, None]),
    ),
    *same("seawater.extras", "satAr satN2 satO2", S, T),
    *calls(
        "seawater.extras",
        f=45.0,
        swvel=(10.0, 100.0),
        dist=(np.array([10.0, 12.0, 15.0]), np.array([20.0, 22.0, 21.0])),
    ),
    *same(
        "psychrolib",
        "GetTRankineFromTFahrenheit GetTFahrenheitFromTRankine GetTKelvinFromTCelsius GetSatVapPres"
        " GetDryAirEnthalpy GetStandardAtmPressure GetStandardAtmTemperature",
        25.0,
    ),
    *same("psychrolib", "GetDryAirDensity GetDryAirVolume GetSatHumRatio GetSatAirEnthalpy", 25.0, 101325.0),
    *same(
        "psychrolib",
        "GetVapPresFromRelHum GetTDewPointFromRelHum",
        25.0,
        0.6,
    ),
    *same(
        "psychrolib",
        "GetTWetBulbFromRelHum GetHumRatioFromRelHum CalcPsychrometricsFromRelHum",
        25.0,
        0.6,
        101325.0,
    ),
    *same(
        "psychrolib",
        "GetTWetBulbFromTDewPoint GetTDewPointFromTWetBulb GetRelHumFromTWetBulb"
        " GetHumRatioFromTWetBulb CalcPsychrometricsFromTDewPoint CalcPsychrometricsFromTWetBulb",
        25.0,
        16.0,
        101325.0,
    ),
    *same(
        "psychrolib",
        "GetTWetBulbFromHumRatio GetRelHumFromHumRatio GetTDewPointFromHumRatio GetDegreeOfSaturation"
        " GetMoistAirVolume GetMoistAirDensity",
        25.0,
        0.009,
        101325.0,
    ),
    *calls(
        "psychrolib",
        GetRelHumFromTDewPoint=(25.0, 16.0),
        GetRelHumFromVapPres=(25.0, 1800.0),
        GetTDewPointFromVapPres=(25.0, 1800.0),
        GetVapPresFromTDewPoint=16.0,
        GetHumRatioFromTDewPoint=(16.0, 101325.0),
        GetHumRatioFromVapPres=(1800.0, 101325.0),
        GetVapPresFromHumRatio=(0.009, 101325.0),
        GetSpecificHumFromHumRatio=0.009,
        GetHumRatioFromSpecificHum=0.009,
        GetTDryBulbFromEnthalpyAndHumRatio=(50000.0, 0.009),
        GetHumRatioFromEnthalpyAndTDryBulb=(50000.0, 25.0),
        GetVaporPressureDeficit=(25.0, 0.009),
        GetMoistAirEnthalpy=(25.0, 0.009),
        GetTDryBulbFromMoistAirVolumeAndHumRatio=(0.86, 0.009, 101325.0),
        GetSeaLevelPressure=(101226.5, 105.0, 17.0),
        GetStationPressure=(101325.0, 105.0, 17.0),
    ),
    *same(
        "thermofeel.thermofeel",
        "calculate_discomfort_index calculate_heat_index_simplified"
        " calculate_nonsaturation_vapour_pressure calculate_relative_strain_index"
        " calculate_summer_simmer_index calculate_wbgt_simple calculate_wbt",
        np.array([298.0, 305.0, 310.0]),
        np.array([60.0, 45.0, 70.0]),
    ),
    *same(
        "thermofeel.thermofeel",
        "calculate_heat_index_adjusted calculate_humidex calculate_relative_humidity_percent",
        np.array([298.0, 305.0, 310.0]),
        np.array([288.0, 290.0, 295.0]),
    ),
    *same(
        "thermofeel.thermofeel",
        "calculate_bgt calculate_mrt_from_bgt",
        np.array([298.0, 305.0]),
        np.array([310.0, 318.0]),
        np.array([2.0, 3.5]),
    ),
    *same(
        "thermofeel.thermofeel",
        "calculate_apparent_temperature calculate_normal_effective_temperature",
        np.array([298.0, 305.0]),
        np.array([2.0, 3.5]),
        np.array([60.0, 45.0]),
    ),
    *calls(
        "thermofeel.thermofeel",
        approximate_dsrp=(np.array([500.0, 600.0]), np.array([0.5, 0.05])),
        calculate_dew_point_from_relative_humidity=(np.array([60.0, 45.0]), np.array([298.0, 305.0])),
        calculate_mean_radiant_temperature=tuple(
            np.array([value, 0.9 * value]) for value in (600.0, 500.0, 650.0, 400.0, 450.0, -90.0, 0.6)
        ),
        calculate_ppd=np.array([0.5, -1.0]),
        calculate_saturation_vapour_pressure=np.array([298.0, 270.0]),
        calculate_saturation_vapour_pressure_multiphase=(np.array([298.0, 270.0]), np.array([0, 1])),
        calculate_utci=With(
            np.array([298.0, 305.0]), np.array([2.0, 3.5]), np.array([310.0, 318.0]), np.array([288.0, 290.0])
        ),
        calculate_utci_polynomial=tuple(np.array([value, 1.1 * value]) for value in (25.0, 8.0, 2.0, 1.5)),
        calculate_wbgt=tuple(np.array([value, 1.01 * value]) for value in (298.0, 310.0, 2.0, 288.0)),
        calculate_wind_chill=(np.array([263.0, 270.0]), np.array([5.0, 8.0])),
        scale_windspeed=(np.array([5.0, 8.0]), 1.2),
    ),
    *same("thermofeel.helpers", "celsius_to_kelvin fahrenheit_to_celsius kelvin_to_fahrenheit", np.array([10.0, 70.0])),
    *same("pyet.meteo_utils", "calc_e0 calc_lambda calc_vpc", np.array([10.0, 22.0])),
    *calls(
        "pyet.meteo_utils",
        calc_es=With(tmax=np.array([20.0, 25.0]), tmin=np.array([8.0, 11.0])),
        calc_press=200.0,
        calc_psy=101.3,
        calc_rho=(101.3, 20.0, 1.2),
        calc_res_aero=2.0,
        calc_res_surf=With(lai=2.5),
        relative_distance=np.array([100.0, 200.0]),
        solar_declination=np.array([100.0, 200.0]),
        sunset_angle=(0.3, 0.8),
    ),
    *calls(
        "bruges.rockphysics.moduli",
        bulk=(2350.0, 1150.0, 2400.0),
        lam=(2350.0, 1150.0, 2400.0),
        moduli_dict=(2350.0, 1150.0, 2400.0),
    ),
    *same("bruges.rockphysics.moduli", "mu pmod pr youngs", 2350.0, 1150.0, 2400.0),
    *same("bruges.rockphysics.fluids", "rho_brine v_brine", 60.0, 20.0, 0.05),
    *same("bruges.rockphysics.fluids", "rho_water v_water", 60.0, 20.0),
    *calls("bruges.rockphysics.fluids", rho_gas=(60.0, 20.0, 18.0), wood=(2.2, 0.1, 0.7)),
    *same(
        "bruges.rockphysics.anisotropy",
        "backus backus_parameters",
        *(RANDOM.uniform(low, high, 40) for low, high in ((2300.0, 3000.0), (1100.0, 1500.0), (2300.0, 2600.0))),
        5.0,
        1.0,
    ),
    *calls(
        "bruges.rockphysics.anisotropy",
        crack_density=(0.2, 0.1),
        hudson_delta_G=(0.02, 0.1, 9.0, 5.0),
        hudson_delta_M=(0.02, 0.1, 9.0, 5.0),
        blangy=(*UPPER, 0.1, 0.2, *LOWER, 0.05, 0.15, 20.0),
        ruger=(*UPPER, 0.1, 0.2, *LOWER, 0.05, 0.15, 20.0),
    ),
    *calls(
        "bruges.rockphysics.elastic",
        elastic_impedance=(np.array([2350.0, 2500.0]), np.array([1150.0, 1300.0]), np.array([2400.0, 2450.0]), 20.0),
    ),
    *same(
        "bruges.rockphysics.rockphysicsmodels",
        "constant_cement contact_cement critical_porosity increasing_cement",
        37.0,
        44.0,
        0.2,
    ),
    *same("bruges.rockphysics.rockphysicsmodels", "soft_sand stiff_sand vernik_consol_sand", 37.0, 44.0, 0.2, 20.0),
    *calls(
        "bruges.rockphysics.rockphysicsmodels",
        hertz_mindlin=(37.0, 44.0, 20.0),
        vernik_shale=(0.4, 0.1),
        vernik_soft_sand_2=(37.0, 44.0, 0.2),
    ),
    *same(
        "bruges.rockphysics.bounds",
        "hill_average reuss_bound voigt_bound",
        np.array([0.3, 0.7]),
        np.array([37.0, 21.0]),
    ),
    *calls(
        "bruges.rockphysics.bounds",
        hashin_shtrikman=(np.array([0.3, 0.7]), np.array([37.0, 21.0]), np.array([44.0, 7.0])),
    ),
    *calls(
        "bruges.rockphysics.fluidsub",
        avseth_fluidsub=(*UPPER, 0.2, 1000.0, 250.0, 3.6e10, 2.2e9, 0.05e9),
        avseth_gassmann=(13.0, 2.2, 0.05, 36.0, 0.2),
        rhosat=(0.2, 0.6, 2650.0, 1050.0, 250.0),
        smith_gassmann=(9.0, 36.0, 2.2, 0.2),
        vels=(9.0, 7.0, 36.0, 2.65, 2.2, 1.05, 0.2),
        vrh=(21.0, 36.0, 0.3),
    ),
    *same(
        "bruges.reflection.reflection",
        "akirichards akirichards_alt bortfeld bortfeld2 bortfeld3 fatti hilterman shuey shuey2 shuey3"
        " zoeppritz_rpp scattering_matrix",
        *UPPER,
        *LOWER,
        20.0,
    ),
    *calls(
        "bruges.reflection.reflection",
        blangy=With(*UPPER, *LOWER, 0.1, 0.2, 0.05, 0.15, 20.0),
        critical_angles=(2350.0, 2900.0, 1500.0),
    ),
    *calls(
        "bruges.reflection.reflection",
        acoustic_reflectivity=(np.array([2350.0, 2500.0, 2400.0]), np.array([2400.0, 2450.0, 2430.0])),
        reflectivity=(
            np.array([2350.0, 2500.0, 2400.0]),
            np.array([1150.0, 1300.0, 1200.0]),
            np.array([2400.0, 2450.0, 2430.0]),
        ),
    ),
    *calls(
        "bruges.filters.wavelets",
        ricker=With(0.1, 0.004, 25.0),
        sinc=With(0.1, 0.004, 25.0),
        gabor=With(0.1, 0.004, 25.0),
    ),
    *calls(
        "bruges.petrophysics.petrophysics",
        gardner=np.array([2350.0, 2500.0]),
        inverse_gardner=np.array([2400.0, 2450.0]),
    ),
    *calls(
        "bruges.petrophysics.petrophysics",
        density_to_porosity=(2400.0, 2650.0, 1000.0),
        porosity_to_density=(0.2, 2650.0, 1000.0),
    ),
    *calls(
        "bruges.util.util",
        moving_average=(RANDOM.normal(size=12), 3),
        normalize=RANDOM.normal(size=6),
        rms=RANDOM.normal(size=6),
    ),
    *same(
        "choclo.point._forward",
        "gravity_e gravity_ee gravity_en gravity_eu gravity_n gravity_nn gravity_nu gravity_pot gravity_u gravity_uu",
        *PLACES,
        1e9,
    ),
    *same(
        "choclo.prism._gravity",
        "gravity_e gravity_ee gravity_en gravity_n gravity_nu gravity_pot gravity_u gravity_uu",
        *PRISM,
    ),
    *same(
        "choclo.prism._kernels",
        "kernel_e kernel_ee kernel_eee kernel_enu kernel_pot kernel_uuu",
        1.0,
        2.0,
        3.0,
        14.0**0.5,
    ),
    *same("choclo.dipole._forward", "magnetic_e magnetic_field magnetic_n magnetic_u", *PLACES, 1.0, 2.0, -3.0),
    *calls("choclo.utils", distance_cartesian=PLACES, distance_spherical=(10.0, 20.0, 6370.0, 12.0, 25.0, 6380.0)),
    *same(
        "pykrige.variogram_models",
        "exponential_variogram_model gaussian_variogram_model hole_effect_variogram_model spherical_variogram_model",
        [2.0, 5.0, 0.1],
        np.array([0.5, 2.0, 4.0, 7.0]),
    ),
    *calls(
        "pykrige.variogram_models",
        linear_variogram_model=([2.0, 0.1], np.array([0.5, 2.0])),
        power_variogram_model=([2.0, 1.5, 0.1], np.array([0.5, 2.0])),
    ),
    *calls(
        "pykrige.core", great_circle_distance=(10.0, 20.0, 12.0, 25.0), euclid3_to_great_circle=np.array([0.3, 0.5])
    ),
    *calls(
        "gstools.tools.geometric",
        great_circle_to_chordal=(np.array([0.3, 0.5]), 2.0),
        chordal_to_great_circle=(np.array([0.3, 0.5]), 2.0),
    ),
    *calls(
        "gstools.tools.geometric",
        matrix_rotate=(3, np.array([0.1, 0.2, 0.3])),
        matrix_isometrize=(2, np.array([0.3]), np.array([0.5])),
    ),
]
